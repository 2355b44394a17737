"""What people read of the figures of a step (REPLAY-13)."""

from msgspec import structs

from odf_node.derive.step_log import MetricsBasis, describe_step, explain_time
from odf_node.derive.step_measurements import StepClock
from odf_protocol.step_metrics import RowsByOperation, StateSize, StepMetrics

FIGURES = StepMetrics(
    rows_read=(1200, None, 34),
    rows_out=RowsByOperation(append=8, retract=1, correct_from=2, correct_to=2),
    late_rows=3,
    state_before=StateSize(rows=1000, size_bytes=10),
    milliseconds={"reading": 100, "computing": 800, "checking": 60, "starting": 1, "\x1b[2J": 240},
)


def test_step_is_described_in_a_few_words() -> None:
    assert describe_step(FIGURES) == "read 1,234, gave +8 -1 2 corrected, 3 late, 1.2 s"
    plain = StepMetrics(rows_read=(5,), rows_out=RowsByOperation(append=5), late_rows=0)
    assert describe_step(plain) == "read 5, gave +5"


def test_figures_of_others_are_told_to_be_their_words_replay_15() -> None:
    claimed = describe_step(FIGURES, MetricsBasis.CLAIMED)
    assert claimed == "read 1,234, gave +8 -1 2 corrected, 3 late, 1.2 s (by the publisher's words)"
    assert describe_step(FIGURES, MetricsBasis.COMPARED).endswith("(compared here, its time by the publisher's words)")


def test_time_of_a_step_is_explained_by_its_largest_share_first() -> None:
    assert explain_time(FIGURES) == [
        "67 %  the query; of 1,234 rows read, earlier steps had read 1,000",
        "20 %  other things",  # words of a stranger
        "8 %  bringing new rows to the engine",
        "5 %  checking what the engine gave",
    ]
    assert explain_time(structs.replace(FIGURES, milliseconds={})) == []


def test_clock_adds_up_and_never_gives_more_than_it_measured() -> None:
    clock = StepClock()
    clock.add("checking", 100)
    clock.add("checking", 50)
    clock.split("checking", "computing", 0.12)
    assert clock.milliseconds == {"checking": 30, "computing": 120}
    clock.split("checking", "computing", 9.0)
    assert clock.milliseconds == {"checking": 0, "computing": 150}
