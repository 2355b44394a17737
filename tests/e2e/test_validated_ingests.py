"""Validators in ingests: the same words from both engines, around every merge, and whatever a plug-in does (VALID)."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odf_engines import plug_in_names
from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import IngestRequest, IngestResponse, Limits
from odf_engines.errors import EngineFailureError, InvalidSourceError, LimitExceededError
from odf_engines.ingest_parts import ValidatorCall
from odf_engines.plug_in_names import VALIDATORS
from odf_protocol.events import (
    DataTypeDate,
    DataTypeInt64,
    DataTypeString,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    ReadStepCsv,
    ReadStepNdJson,
    TransformSql,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.command_line import list_kept
from support.ingests import FALLBACK, SYSTEM_TIME, RootDataset, quarantined, rows_of, schema
from support.nodes import RanCommand, RealNode
from support.plug_in_packages import installed_package

pytestmark = pytest.mark.usefixtures("light_engines")

SCHEMA = schema(event_time=DataTypeDate(), n=DataTypeInt64(), text=DataTypeString())
READ = ReadStepCsv(schema=SCHEMA, header=True)
ROWS = "event_time,n,text\n2020-01-02,1,a\n2020-01-01,200,B\n,3,\n2020-01-04,1,\n2020-01-05,5,e,e\n"


def call(kind: str, *, is_warning: bool = False, **parameters: object) -> ValidatorCall:
    place = VALIDATORS.find_place(kind)
    assert place is not None
    text = json.dumps(parameters)
    return ValidatorCall(name=kind, module=place[0], attribute=place[1], parameters=text, is_warning=is_warning)


CALLS = (
    call("Range", column="n", most="100"),
    call("Required", columns=["text"]),
    call("Format", column="text", pattern="[a-z]"),
    call("Unique", columns=["n"]),
    call("Required", columns=["event_time"], is_warning=True),
)


def request(path: Path, **changes: object) -> IngestRequest:
    values = {
        "dataset_id": "did:odf:test",
        "read": READ,
        "preprocess": None,
        "merge": MergeStrategyAppend(),
        "vocabulary": Vocabulary(),
        "source_path": path,
        "source_name": "the source",
        "known_schema": None,
        "state_path": None,
        "system_time": Timestamp.parse(SYSTEM_TIME),
        "fallback_event_time": Timestamp.parse(FALLBACK),
        "next_offset": 0,
    }
    return IngestRequest(**{**values, **changes})


@pytest.fixture(scope="module")
def arrow(tmp_path_factory: pytest.TempPathFactory):
    with ArrowEngine().open(tmp_path_factory.mktemp("arrow"), Limits()) as opened:
        yield opened


def reported(response: IngestResponse) -> list[tuple]:
    return [
        (
            row["record"],
            row["stage"],
            [(e["plug_in"], e["code"], e["column"], e["value"], e["severity"]) for e in row["errors"]],
        )
        for row in quarantined(response)
    ]


EXPECTED = [
    (2, "validate", [("Range", "range", "n", "200", "error"), ("Format", "format", "text", "B", "error")]),
    (
        3,
        "validate",
        [("Required", "required", "text", None, "error"), ("Required", "required", "event_time", None, "warning")],
    ),
    (4, "validate", [("Required", "required", "text", None, "error"), ("Unique", "duplicate", "n", "1", "error")]),
    (5, "read", [("Csv", "broken-record", None, None, "error")]),
]  # fmt: skip


@pytest.mark.spark
def test_both_engines_say_the_same_of_the_same_rows(arrow, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    ours = arrow.ingest(request(tmp_path / "rows.csv", validators=CALLS))
    theirs = RootDataset(READ).ingest(ROWS, validators=CALLS)
    # Rows in another form than the plain one: Spark converts them itself.
    changed = RootDataset(READ).ingest(ROWS.replace(",200,", ",+200,"), validators=CALLS)
    assert reported(ours) == EXPECTED
    assert reported(theirs) == EXPECTED
    assert quarantined(ours) == quarantined(theirs)
    assert reported(changed)[0][2][0][3] == "+200"
    assert ours.data_path is not None
    assert theirs.data_path is not None
    assert ours.data_path.read_bytes() == theirs.data_path.read_bytes()
    assert [row["n"] for row in rows_of(changed.data_path)] == [1]
    for response in (ours, theirs, changed):
        assert response.statistics.rows_in == response.statistics.rows_out + response.quarantined_rows
        assert response.quarantine_codes == {
            "range": 1, "format": 1, "required": 2, "duplicate": 1, "broken-record": 1,
        }  # fmt: skip


@pytest.mark.spark
def test_both_engines_count_time_and_rows_of_each_validator_stage_1(arrow, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    ours = arrow.ingest(request(tmp_path / "rows.csv", validators=CALLS)).statistics.stages
    theirs = RootDataset(READ, merge=MergeStrategySnapshot(primary_key=("n",))).ingest(
        ROWS.replace(",200,", ",+200,"), validators=CALLS
    )
    for stages in (ours, theirs.statistics.stages):
        found = {(each.stage, each.plug_in, each.position): each for each in stages}
        counts = {key: (each.rows_in, each.rows_out, each.bad_rows) for key, each in found.items()}
        assert {key: count for key, count in counts.items() if key[0] in {"read", "validate"}} == {
            ("read", "", 0): (5, 4, 1),
            ("read", "Csv", 0): (5, 4, 1),
            ("validate", "", 0): (4, 1, 3),
            ("validate", "Range", 0): (4, 3, 1),
            ("validate", "Required", 1): (4, 2, 2),
            ("validate", "Format", 2): (4, 3, 1),
            ("validate", "Unique", 3): (4, 3, 1),
            ("validate", "Required", 4): (4, 4, 0),
        }
        assert counts["quarantine", "", 0] == (4, 4, None)
        assert found["merge", "", 0].rows_out == 1
        assert all(each.seconds > 0 and each.began_s <= each.ended_s for each in stages)
        plug_ins = sum(each.seconds for each in stages if each.stage == "validate" and each.plug_in)
        assert plug_ins <= found["validate", "", 0].seconds
    assert ("merge", "Append", 0) in {(each.stage, each.plug_in, each.position) for each in ours}
    assert ("merge", "Snapshot", 0) in {(each.stage, each.plug_in, each.position) for each in theirs.statistics.stages}


def test_row_stands_in_quarantine_with_its_columns_as_the_sender_gave_them(arrow, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('text,n,event_time\n"a""b",007,2020-01-01\n')
    response = arrow.ingest(request(tmp_path / "rows.csv", validators=(call("Range", column="n", most="1"),)))
    (row,) = quarantined(response)
    assert row["original"] == '"a""b",007,2020-01-01'
    assert row["columns"] == [
        {"name": "text", "value": 'a"b'},
        {"name": "n", "value": "007"},
        {"name": "event_time", "value": "2020-01-01"},
    ]
    assert row["errors"][0]["value"] == "007"


def test_warnings_of_rows_that_were_taken_are_told(arrow, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("event_time,n,text\n,1,a\n,2,b\n")
    response = arrow.ingest(request(tmp_path / "rows.csv", validators=CALLS))
    (warning,) = response.warnings
    assert (warning.rows, warning.column, warning.reason) == (2, "event_time", "a value is required")
    assert (response.quarantined_rows, response.statistics.rows_out) == (0, 2)


def test_column_that_is_not_there_fails_the_ingest_by_the_validators_name(arrow, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    with pytest.raises(InvalidSourceError, match="validator Range: column: expected a column of the rows"):
        arrow.ingest(request(tmp_path / "rows.csv", validators=(call("Range", column="m", most="1"),)))


@pytest.mark.spark
def test_rows_that_validators_keep_away_do_not_reach_the_merge() -> None:
    dataset = RootDataset(READ, MergeStrategySnapshot(primary_key=("n",)))
    response = dataset.ingest(ROWS, validators=CALLS[:3])
    # The second row with the key is bad for its text, and so no duplicate to the merge.
    assert [(row["n"], row["op"]) for row in rows_of(response.data_path)] == [(1, 0)]
    assert [(number, stage) for number, stage, _ in reported(response)] == [
        (2, "validate"), (3, "validate"), (4, "validate"), (5, "read"),
    ]  # fmt: skip
    ledger = RootDataset(READ, MergeStrategyLedger(primary_key=("n",)))
    again = ledger.ingest(ROWS, validators=(call("Required", columns=["text"]),))
    assert [row["n"] for row in rows_of(again.data_path)] == [200, 1]


@pytest.mark.spark
def test_results_of_a_query_are_validated_and_stand_as_json() -> None:
    query = TransformSql(engine="spark", query="SELECT event_time, n * 2 AS twice FROM input")
    dataset = RootDataset(READ, preprocess=query)
    response = dataset.ingest(ROWS, validators=(call("Range", column="twice", most="7"),))
    assert [row["twice"] for row in rows_of(response.data_path)] == [2, 2, 6]
    bad, broken = sorted(quarantined(response), key=lambda row: row["stage"], reverse=True)
    assert (bad["record"], json.loads(bad["original"])) == (None, {"event_time": "2020-01-01", "twice": 400})
    assert bad["errors"][0]["value"] == "400"
    assert broken["record"] == 5


@pytest.mark.spark
@pytest.mark.parametrize(
    "merge", [MergeStrategyAppend(), MergeStrategyLedger(primary_key=("n",))], ids=["append", "ledger"]
)
def test_condition_in_sql_must_be_true_and_one_that_cannot_be_computed_is_not(merge) -> None:
    read = ReadStepNdJson(schema=schema(n=DataTypeInt64(), ord=DataTypeInt64(), t=DataTypeString()))
    rows = "".join(
        json.dumps(dict(zip(("n", "ord", "t"), row, strict=True))) + "\n"
        for row in [(1, 1, "5"), (2, 0, "5"), (3, None, "5"), (4, 1, "x"), (5, 100, "5"), (6, 1, "4")]
    )
    condition = call("Predicate", sql="10 / ord > 1 AND CAST(t AS INT) = 5 -- why not", message="not so")
    response = RootDataset(read, merge).ingest(rows, validators=(call("Range", column="n", most="5"), condition))
    assert [row["n"] for row in rows_of(response.data_path)] == [1]
    assert [(number, [code for _, code, *_ in errors]) for number, _, errors in reported(response)] == [
        (2, ["predicate"]), (3, ["predicate"]), (4, ["predicate"]), (5, ["predicate"]), (6, ["range", "predicate"]),
    ]  # fmt: skip
    assert quarantined(response)[0]["errors"][0]["message"] == "not so"


@pytest.mark.spark
@pytest.mark.parametrize(
    "sql",
    [
        "true) OR (true",
        "n > (SELECT max(n) FROM other)",
        "java_method('a', 'b') = 1",
        "x > 1",
        "true FROM rows --",
        "(",
        "1",
    ],
)
def test_condition_that_is_more_or_less_than_one_is_rejected(sql: str) -> None:
    dataset = RootDataset(READ)
    with pytest.raises(InvalidSourceError, match="validator Predicate: "):
        dataset.ingest(ROWS, validators=(call("Predicate", sql=sql),))


PLUG_INS = """
import os, time
from dataclasses import dataclass
import pyarrow as pa
from odf_engines.validation.contract import Fault, Validator

class Odd(Validator):
    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        column: str
    @property
    def column_names(self):
        return (self.parameters.column,)
    def check(self, rows):
        print("said on the way")
        odd = [place for place, value in enumerate(rows.column(0).to_pylist()) if value is not None and value % 2]
        yield Fault(code="odd", message="odd", column=self.parameters.column, rows=pa.array(odd, pa.int64()))

class Dies(Odd):
    def check(self, rows):
        os._exit(3)

class Hangs(Odd):
    def check(self, rows):
        time.sleep(1000)

class Eats(Odd):
    def check(self, rows):
        kept = []
        while True:
            kept.append(bytearray(b"x" * 2**24))

class Looks(Odd):
    def check(self, rows):
        open("/etc/shadow")
"""


@pytest.fixture
def plug_ins(tmp_path_factory: pytest.TempPathFactory):
    """A package of somebody else's, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    points = {name: name for name in ("Odd", "Dies", "Hangs", "Eats", "Looks")} | {"Range": "Odd"}
    with installed_package(folder, "odd_rows", PLUG_INS, "odf_validators", points):
        yield folder


@pytest.fixture
def session(plug_ins, tmp_path: Path):
    limits = Limits(wall_s=6.0, memory_bytes=600 * 1024 * 1024)
    with ArrowEngine().open(tmp_path, limits) as opened:
        yield opened


def test_validator_of_another_package_runs_in_the_sandbox(session, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    response = session.ingest(request(tmp_path / "rows.csv", validators=(call("Odd", column="n"),)))
    assert [number for number, *_ in reported(response)] == [1, 3, 4, 5]
    assert [row["n"] for row in rows_of(response.data_path)] == [200]
    # A name of ours stays ours.
    assert call("Range").module == "odf_quality.value_checks"


def test_validator_that_reaches_out_of_the_sandbox_traps_its_rows(session, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    response = session.ingest(request(tmp_path / "rows.csv", validators=(call("Looks", column="n"),)))
    assert {code for _, _, errors in reported(response) for _, code, *_ in errors} == {"failed", "broken-record"}
    assert response.data_path is None


@pytest.mark.parametrize(
    ("kind", "error", "stated"),
    [
        ("Dies", EngineFailureError, "validator Dies"),
        ("Hangs", LimitExceededError, "limit wall_s reached at validator Hangs"),
        ("Eats", LimitExceededError, "limit memory_bytes reached at validator Eats"),
    ],
)
def test_validator_that_ends_the_sandbox_fails_the_batch_by_its_name(
    session, tmp_path: Path, kind, error, stated
) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    with pytest.raises(error, match=stated):
        session.ingest(request(tmp_path / "rows.csv", validators=(call("Odd", column="n"), call(kind, column="n"))))
    # The next one goes on.
    assert session.ingest(request(tmp_path / "rows.csv")).statistics.rows_out == 4


MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: orders
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        schema:
          fields:
            - {{name: id, type: Int64}}
            - {{name: mail, type: {{kind: Option, inner: String}}}}
      merge: {{kind: Append}}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
{rules}
"""


def manifest(folder: Path, *rules: str) -> str:
    path = folder / "orders.yaml"
    path.write_text(MANIFEST.format(rules="\n".join(f"              {line}" for line in rules)))
    return str(path)


RULES = (
    "largestBadShare: 0.6",
    "largestBadRowsPerCode: {duplicate: 1}",
    "validators:",
    "  - {kind: Format, column: mail, format: email}",
    "  - {kind: Unique, columns: [id]}",
    "  - {kind: Required, columns: [mail], severity: Warning}",
    "  - {kind: RowCount, least: 3}",
)


def test_declared_validators_part_a_batch_and_the_others_go_on(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, *RULES))
    (tmp_path / "orders.csv").write_text("id,mail\n1,a@b.org\n2,nobody\n2,\n4,\n5,c@d.org\n")
    ran = node.must("ingest", "orders", str(tmp_path / "orders.csv"))
    assert "orders: 3 rows added" in ran.out
    assert (
        "2 rows could not be taken: kept aside (1 row: mail: not of the format email (first 'nobody' in line 3)"
        in ran.out
    )
    assert "orders: taken with a warning: 1 row: mail: a value is required" in ran.out
    assert [row["id"] for row in json.loads(node.must("tail", "orders", "-o", "json").out)] == [1, 4, 5]
    kept = json.loads(node.must("quarantine", "show", "orders", "-o", "json").out)
    assert [[error["code"] for error in row["errors"]] for row in kept] == [["format"], ["duplicate", "required"]]
    # The chain says what was applied.
    assert "kind: Unique, columns: [id]" in node.must("log", "orders", "-o", "yaml").out


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("1,a@b.org\n2,c@d.org\n", "RowCount: expected at least 3 rows, found 2"),
        ("1,a@b.org\n1,c@d.org\n1,d@e.org\n2,e@f.org\n3,\n", "at most 1 row may fail with the code duplicate"),
        ("1,a\n2,b\n3,c\n4,a@b.org\n", "at most 60% may fail"),
    ],
    ids=["too-few", "a-code", "a-share"],
)
def test_batch_that_breaks_a_limit_is_rejected_whole(tmp_path: Path, rows: str, why: str) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, *RULES))
    (tmp_path / "orders.csv").write_text(f"id,mail\n{rows}")
    before = list_kept(node.home)["datasets"]
    ran = node.run("ingest", "orders", str(tmp_path / "orders.csv"))
    assert ran.code == 7
    assert why in ran.err
    assert list_kept(node.home)["datasets"] == before


def test_batch_of_other_size_than_the_one_before_is_rejected_whole(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, "leastOfLast: 0.5", "mostOfLast: 2"))

    def ingest(first: int, count: int) -> RanCommand:
        lines = "".join(f"{number},\n" for number in range(first, first + count))
        (tmp_path / "orders.csv").write_text(f"id,mail\n{lines}")
        return node.run("ingest", "orders", str(tmp_path / "orders.csv"))

    assert ingest(0, 10).code == 0
    before = list_kept(node.home)["datasets"]
    for count, why in ((4, "fewer than 0.5 times as many"), (21, "more than 2 times as many")):
        refused = ingest(100, count)
        assert refused.code == 7
        assert f"each of {count} rows of" in refused.err
        assert f"the batch before had 10 rows, this one has {count}: {why}" in refused.err
        assert list_kept(node.home)["datasets"] == before
    assert ingest(100, 5).code == 0
    assert ingest(200, 4).code == 0


@pytest.mark.parametrize(
    ("rules", "stated"),
    [
        (["validator: []"], "in line 1, validator: one of largestBadShare, "),
        (["largestBadRows: -1"], "in line 1, largestBadRows: a number of rows"),
        (["validators: {kind: Range}"], "in line 1, validators: a list of validators"),
        (["validators:", "  - {kind: Rnge, column: id, most: 1}"], "did you mean 'Range'?"),
        (["validators:", "  - {column: id, most: 1}"], "in line 2, validators[0].kind: a validator (Format, "),
        (["validators:", "  - {kind: Range, column: idd, most: 1}"], "found idd; did you mean 'id'?"),
        (["validators:", "  - {kind: Range, column: id, mst: 1}"], "validators[0].mst: a parameter of it"),
        (["validators:", "  - {kind: Range, column: id}"], "in line 2, validators[0].least: a least value"),
        (["validators:", "  - {kind: Range, column: id, most: x}"], "validators[0].most: a value of the type int64"),
        (["validators:", "  - {kind: Range, column: id, severity: x}"], "validators[0].severity: Error or Warning"),
    ],
)  # fmt: skip
def test_rule_that_cannot_be_followed_is_rejected_by_add_with_its_place(
    tmp_path: Path, rules: list, stated: str
) -> None:
    node = RealNode(tmp_path / "home")
    ran = node.run("add", manifest(tmp_path, *rules))
    assert ran.code == 7, ran.out
    assert "orders.yaml:" in ran.err
    assert "metadata[1].attachments.items[0].content" in ran.err
    assert stated in ran.err
    assert list_kept(node.home)["datasets"] == ()


def test_validator_that_is_gone_stops_the_ingest_and_is_named(tmp_path: Path, plug_ins) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, "validators:", "  - {kind: Odd, column: id}"))
    (tmp_path / "orders.csv").write_text("id,mail\n2,\n4,\n5,\n")
    assert "2 rows" in node.must("ingest", "orders", str(tmp_path / "orders.csv")).out
    sys.path.remove(str(plug_ins))
    plug_in_names._points_of.cache_clear()
    try:
        ran = node.run("ingest", "orders", str(tmp_path / "orders.csv"))
    finally:
        sys.path.insert(0, str(plug_ins))
        plug_in_names._points_of.cache_clear()
    assert ran.code == 8
    assert "unsupported validator: Odd" in ran.err
    assert pq.read_table(_only_slice(node)).num_rows == 2


def _only_slice(node: RealNode) -> Path:
    found = [path for path in (node.home / "objects").rglob("*") if path.is_file() and "id" in _names(path)]
    assert len(found) == 1
    return found[0]


def _names(path: Path) -> list[str]:
    return list(pq.read_schema(path).names)
