"""What stages and plug-ins of ingests did: counted by a clock, and read from an untrusted answer (STAGE-1, STAGE-2)."""

import pytest

from odf_engines.stage_metrics import (
    MAX_STAGE_LINES,
    IngestStage,
    StageClock,
    StageMetrics,
    merge_stages,
    read_stage_metrics,
)

KNOWN = {("read", ""), ("read", "Csv"), ("validate", ""), ("validate", "Range")}
GOOD = {
    "stage": "validate",
    "plug_in": "Range",
    "position": 1,
    "seconds": 0.5,
    "rows_in": 10,
    "rows_out": 8,
    "bad_rows": 2,
    "began_s": 100.0,
    "ended_s": 101.0,
}


def test_subsets_of_a_plug_in_are_added_up() -> None:
    clock = StageClock()
    for rows in (3, 4):
        with clock.measuring(IngestStage.VALIDATE, "Range", 1) as sums:
            sums.count(rows_in=rows, bad_rows=1)
    (found,) = clock.figures
    assert (found.stage, found.plug_in, found.position) == ("validate", "Range", 1)
    assert (found.rows_in, found.rows_out, found.bad_rows) == (7, None, 2)
    assert 0 < found.seconds <= found.ended_s - found.began_s


def test_stage_of_one_plug_in_counts_the_same_rows() -> None:
    clock = StageClock()
    with clock.measuring_alone(IngestStage.READ, "Csv") as sums:
        sums.count(rows_in=5, rows_out=4, bad_rows=1)
    assert [(each.plug_in, each.rows_in, each.bad_rows) for each in clock.figures] == [("", 5, 1), ("Csv", 5, 1)]


def test_answer_of_a_guest_is_read() -> None:
    clock = StageClock()
    with clock.measuring(IngestStage.READ, "Csv") as sums:
        sums.count(rows_in=2)
    assert read_stage_metrics(clock.to_answer(), KNOWN) == clock.figures
    assert read_stage_metrics([GOOD], KNOWN) == (StageMetrics(**GOOD),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"plug_in": "a secret"}, id="plug-in that nobody asked for"),
        pytest.param({"stage": "persist", "plug_in": ""}, id="stage of the node's own"),
        pytest.param({"seconds": float("nan")}, id="no time"),
        pytest.param({"began_s": float("inf")}, id="time without end"),
        pytest.param({"seconds": -1.0}, id="negative time"),
        pytest.param({"rows_in": -1}, id="negative count"),
        pytest.param({"rows_in": 2**63}, id="count beyond all"),
        pytest.param({"bad_rows": True}, id="no count"),
        pytest.param({"position": -1}, id="no position"),
        pytest.param({"ended_s": "now"}, id="text for a time"),
    ],
)
def test_answer_that_says_something_else_is_rejected(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_stage_metrics([GOOD | changes], KNOWN)


def test_answer_with_more_lines_than_any_is_rejected() -> None:
    assert len(read_stage_metrics([GOOD] * MAX_STAGE_LINES, KNOWN)) == MAX_STAGE_LINES
    for found in ([GOOD] * (MAX_STAGE_LINES + 1), None, {}):
        with pytest.raises(ValueError, match="at most"):
            read_stage_metrics(found, KNOWN)


def test_times_outside_of_the_request_are_cut_to_it() -> None:
    lied = StageMetrics(stage="read", seconds=1e9, began_s=0.0, ended_s=1e12).within(100.0, 103.0)
    assert (lied.seconds, lied.began_s, lied.ended_s) == (3.0, 100.0, 103.0)
    late = StageMetrics(stage="read", seconds=1.0, began_s=500.0, ended_s=501.0).within(100.0, 103.0)
    assert (late.seconds, late.began_s, late.ended_s) == (0.0, 103.0, 103.0)


def test_batches_become_one_line_for_each_place_of_a_plug_in() -> None:
    first = StageMetrics(stage="validate", plug_in="Range", position=0, seconds=1.0, rows_in=2)
    second = StageMetrics(stage="validate", plug_in="Range", position=1, seconds=2.0, rows_in=2)
    assert [(each.position, each.seconds) for each in merge_stages([first, second, first])] == [(0, 2.0), (1, 2.0)]
    (together,) = merge_stages([first, second], by_position=False)
    assert (together.seconds, together.rows_in) == (3.0, 4)
