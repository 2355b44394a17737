"""What pulls, ingests, transforms and rejections are told as, to people and to scripts."""

import io
import json
from typing import Any

import pytest

from odf_node.acceptance.offers import AcceptanceReport, FileCount, Subset
from odf_node.cli.console import Console
from odf_node.cli.rejection_text import describe_rejection
from odf_node.cli.reports import Report, ReportLog, describe_report, report_to_json
from odf_node.derive.chain_log import describe_event
from odf_node.derive.step_measurements import TransformReport
from odf_node.ingest.report import IngestReport
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.row_counts import RowCounts
from odf_protocol.events import AddData, DatasetKind, DataSlice, OffsetInterval
from odf_protocol.head import Head
from odf_protocol.policy import Decision, Trust
from support.store_values import NOON, dataset_id, did_key, object_hash

RECORD = DatasetRecord(
    id=dataset_id(),
    name="a.b",
    kind=DatasetKind.ROOT,
    head=Head(7, object_hash(7)),
    origin=Origin.PULLED,
    origin_url="http://peer/a.b",
    trust=Trust.REEXECUTED,
    pinned_key=did_key(),
    published=True,
    created_at=NOON,
)


def accepted(**changes: Any) -> AcceptanceReport:
    values: dict[str, Any] = {
        "record": RECORD,
        "new_blocks": 2,
        "new_rows": 1234,
        "replayed_steps": 2,
        "decision": Decision(True, Trust.REEXECUTED, True, "computed again here"),
        "warnings": (),
        "first_contact": False,
    }
    return AcceptanceReport(**{**values, **changes})


def ingested(**changes: Any) -> IngestReport:
    counts = RowCounts(added=1234)
    return IngestReport(**{"record": RECORD, "up_to_date": False, "counts": counts, "new_blocks": 1, **changes})


REPORTS: list[Report] = [
    ingested(),
    ingested(up_to_date=True, new_rows=0, new_blocks=0),
    TransformReport(RECORD, up_to_date=False, new_rows=5, new_blocks=1),
    accepted(),
    accepted(new_blocks=0, new_rows=0, replayed_steps=0),
]


def test_report_of_growth_names_rows_block_and_the_end_of_its_hash() -> None:
    (line,) = describe_report(ingested())
    assert line == f"a.b: 1,234 rows added, block 7 ({RECORD.head.hash.short})"


def test_one_of_a_thing_is_not_told_as_several() -> None:
    lines = describe_report(ingested(counts=RowCounts(added=1, quarantined=1)))
    assert "1 row added," in lines[0]
    assert "1 row could not be taken:" in lines[1]


def test_each_thing_that_became_of_rows_is_told_and_summed_over_batches() -> None:
    counts = RowCounts(added=200, corrected=1, retracted=5_000, unchanged=7)
    assert describe_report(ingested(counts=counts))[0].startswith(
        "a.b: 200 rows added, 1 corrected, 5,000 retracted, 7 unchanged, block 7 ("
    )
    would = describe_report(ingested(counts=RowCounts(retracted=2), is_rehearsal=True))
    assert would == ["a.b: 2 rows would be retracted"]
    same = describe_report(ingested(counts=RowCounts(unchanged=3), up_to_date=True))
    assert same == ["a.b: up to date (3 rows unchanged)"]
    assert counts.plus(counts) == RowCounts(added=400, corrected=2, retracted=10_000, unchanged=14)
    assert counts.plus(RowCounts(unchanged=None)).unchanged is None


def test_rows_that_converters_left_out_are_told() -> None:
    assert describe_report(ingested(counts=RowCounts(left_out=2)))[1:] == ["a.b: 2 rows left out by its converters"]


def test_report_without_news_says_up_to_date() -> None:
    for report in (ingested(up_to_date=True, counts=RowCounts()), accepted(new_blocks=0, replayed_steps=0)):
        assert describe_report(report) == ["a.b: up to date"]


def test_rows_set_aside_are_told_with_the_command_that_shows_them() -> None:
    for up_to_date in (False, True):
        lines = describe_report(ingested(up_to_date=up_to_date, counts=RowCounts(quarantined=3)))
        assert "3 rows could not be taken" in lines[-1]
        assert "'odf-node quarantine show a.b'" in lines[-1]


def test_acceptance_says_its_grounds_first_contact_and_at_most_five_warnings() -> None:
    lines = describe_report(accepted(first_contact=True, warnings=tuple(f"warning {n}" for n in range(9))))
    assert "1,234 rows; computed again here" in lines[0]
    assert "2 steps re-executed" in lines[1]
    assert str(RECORD.id) in lines[2]
    assert len(lines) == 3 + 5


WHOLE = FileCount(3, 4096, 3, 4096)
PARTIAL = FileCount(3, 4096, 1, 1024)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"new_files": WHOLE}, "accepted 2 new blocks with 1,234 rows in 3 files (4,096 bytes); "),
        ({"new_files": PARTIAL}, "accepted 2 new blocks with 1,234 rows in 3 files (4,096 bytes, 2 here already); "),
        ({}, "accepted 2 new blocks with 1,234 rows; "),
        (
            {"subset": Subset.ROWS_LATER, "new_files": PARTIAL},
            "took 2 new blocks and 3 files (4,096 bytes, 2 here already), said to have 1,234 rows; ",
        ),
        (
            {"subset": Subset.METADATA_ONLY, "new_files": FileCount(3, 4096)},
            "took 2 new blocks without the 3 files (4,096 bytes) that they name, said to have 1,234 rows; ",
        ),
        ({"subset": Subset.METADATA_ONLY}, "took 2 new blocks, which name no files; "),
    ],
)
def test_line_about_new_blocks_says_what_came_and_claims_no_more(changes: dict[str, Any], line: str) -> None:
    assert describe_report(accepted(**changes))[0].startswith(f"a.b: {line}")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"completed_files": WHOLE}, "fetched 3 files (4,096 bytes) and checked 9 rows of 5 blocks taken unchecked; "),
        ({"completed_files": FileCount(3, 4096)}, "checked 9 rows of 5 blocks taken unchecked; "),
        (
            {"completed_files": PARTIAL, "subset": Subset.ROWS_LATER},
            "fetched 1 file (1,024 bytes) of 5 blocks taken without; ",
        ),
        ({"completed_files": FileCount(3, 4096), "subset": Subset.ROWS_LATER}, "all files of 5 blocks are here; "),
    ],
)
def test_line_about_held_blocks_says_what_was_added(changes: dict[str, Any], line: str) -> None:
    report = accepted(new_blocks=0, new_rows=0, replayed_steps=0, completed_blocks=5, completed_rows=9, **changes)
    assert describe_report(report) == [f"a.b: {line}computed again here"]


def test_what_was_taken_unchecked_is_told_with_the_command_that_checks_it_also_without_news() -> None:
    for unchecked, command in ((("rows",), "checks them now"), (("files", "rows"), "--rows-later")):
        up_to_date, line = describe_report(accepted(new_blocks=0, replayed_steps=0, unchecked=unchecked))
        assert up_to_date == "a.b: up to date"
        assert line.startswith(f"a.b: taken unchecked: {', '.join(unchecked)}; 'odf-node pull a.b'")
        assert command in line


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_every_report_has_the_same_fields_for_scripts(report: Report) -> None:
    plain = json.loads(json.dumps(report_to_json(report)))
    assert {"dataset", "id", "head", "newBlocks", "newRows", "upToDate"} <= plain.keys()
    assert plain["upToDate"] is (report.new_blocks == 0)


def test_lines_come_as_things_are_done_and_json_comes_whole_at_the_end() -> None:
    as_text, as_json = Console(out=io.StringIO()), Console(out=io.StringIO())
    with ReportLog(as_text, "text") as text, ReportLog(as_json, "json") as plain:
        for report in REPORTS:
            text.add(report)
            plain.add(report)
        assert len(as_text.out.getvalue().splitlines()) >= len(REPORTS)  # type: ignore[attr-defined]
        assert as_json.out.getvalue() == ""  # type: ignore[attr-defined]
    assert len(json.loads(as_json.out.getvalue())) == len(REPORTS)  # type: ignore[attr-defined]


def test_failure_does_not_swallow_what_was_done_before_it() -> None:
    console = Console(out=io.StringIO())

    def fail_later() -> None:
        with ReportLog(console, "json") as log:
            log.add(ingested())
            raise OSError("later")

    with pytest.raises(OSError, match="later"):
        fail_later()
    assert [each["dataset"] for each in json.loads(console.out.getvalue())] == ["a.b"]  # type: ignore[attr-defined]


def test_failure_before_anything_was_done_leaves_the_result_empty() -> None:
    console = Console(out=io.StringIO())
    with pytest.raises(OSError, match="at once"), ReportLog(console, "json"):
        raise OSError("at once")
    assert console.out.getvalue() == ""  # type: ignore[attr-defined]


# Rejections

REJECTION = {
    "id": "0123456789ab",
    "dataset": "a.b",
    "source": "http://peer/a.b",
    "rule": "CHAIN-4 sequence-integrity",
    "block": 3,
    "reason": "block 3 breaks it",
    "expected": "4",
    "found": "5",
}


def test_rejection_names_offer_rule_expected_found_and_where_the_evidence_is() -> None:
    text = "\n".join(describe_rejection(REJECTION))
    for part in (
        "a.b, block 3",
        "http://peer/a.b",
        "CHAIN-4",
        "expected  4",
        "found     5",
        "Nothing in this node",
    ):
        assert part in text
    assert text.endswith("odf-node inspect refusals 0123456789ab")


def test_rejection_for_figures_shows_the_first_cells_that_differ() -> None:
    cells = [
        {"offset": n, "key": f"row {n}", "column": "deaths", "published": None, "recomputed": n} for n in range(30)
    ]
    report = {**REJECTION, "divergence": {"cells": cells, "differing_rows": 1234}}
    text = "\n".join(describe_rejection(report))
    assert "RE-EXECUTED HERE" in text
    assert "row 9" in text
    assert "row 10" not in text
    assert "null" in text
    assert "1,234 rows differ" in text


def test_event_that_adds_data_is_listed_with_its_rows() -> None:
    slice_ = DataSlice(
        logical_hash=object_hash(1),
        physical_hash=object_hash(2),
        offset_interval=OffsetInterval(start=10, end=1243),
        size=1,
    )
    assert describe_event(AddData(new_data=slice_)) == "AddData  +1,234 rows"
    assert describe_event(AddData()) == "AddData"
