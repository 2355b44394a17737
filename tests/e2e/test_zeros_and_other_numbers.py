"""Rows and keys of -0.0, 0.0 and NaN are equal as SQL groups them, wherever a node folds or matches rows (QUERY-3)."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.engine import EngineSession
from odf_engines.host.tables import table_in
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeList,
    DataTypeOption,
    DataTypeStruct,
)
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.nodes import RealNode
from support.view_histories import Change, View, fold

pytestmark = pytest.mark.usefixtures("light_engines")

ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: t
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
{op}            - {{name: event_time, type: {{kind: Option, inner: {{kind: Timestamp}}}}}}
            - {{name: k, type: {{kind: Option, inner: {kind}}}}}
            - {{name: n, type: {{kind: Option, inner: Int64}}}}
            - {{name: v, type: {{kind: Option, inner: {nested}}}}}
      merge: {merge}
{rules}
"""
OP = "            - {name: op, type: {kind: Option, inner: Int32}}\n"
STRUCT = "{{kind: Struct, fields: [{{name: x, type: {{kind: Option, inner: {kind}}}}}]}}"
RULES = """\
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 0.9
              validators:
                - {kind: Range, column: n, least: 0, most: 100}
"""
TIME = "2024-01-01T00:00:00Z"


def make(folder: Path, merge: str, *, kind: str = "Float64", rules: str = "") -> RealNode:
    node = RealNode(folder / "home")
    op = OP if "Stream" in merge else ""
    text = ROOT.format(kind=kind, merge=merge, rules=rules, nested=STRUCT.format(kind=kind), op=op)
    (folder / "t.yaml").write_text(text)
    node.must("add", str(folder / "t.yaml"))
    return node


def ingest(node: RealNode, *rows: dict[str, object]) -> None:
    path = node.home.with_name("rows.ndjson")
    path.write_text("".join(json.dumps({"event_time": TIME, "v": {"x": row.get("k")}, **row}) + "\n" for row in rows))
    node.must("ingest", "t", str(path))


def state(node: RealNode, *options: str) -> list[tuple[str, int]]:
    rows = node.must("sql", "-c", "SELECT k, n FROM t__state", "-o", "json", *options).json()
    return sorted((str(row["k"]).replace("-0.0", "0.0"), row["n"]) for row in rows)


KEYED = ["Snapshot", "UpsertStream"]


@pytest.mark.parametrize("kind", ["Float32", "Float64"])
@pytest.mark.parametrize("merge", [*KEYED, "Ledger"])
def test_rows_of_both_zeros_have_one_key_in_every_merge(tmp_path: Path, merge: str, kind: str) -> None:
    node = make(tmp_path, f"{{kind: {merge}, primaryKey: [k]}}", kind=kind)
    ingest(node, {"k": "-0.0", "n": 1}, {"k": "NaN", "n": 2}, {"k": "1", "n": 3})
    before = json.loads(node.must("log", "t", "-o", "json", "--all").out.splitlines()[0])

    ingest(node, {"k": "0.0", "n": 1}, {"k": "NaN", "n": 20}, {"k": "1", "n": 3})

    changed = 2 if merge == "Ledger" else 20
    assert state(node) == [("0.0", 1), ("1.0", 3), ("NaN", changed)]
    assert state(node, "--as-of", before["content"]["systemTime"]) == [("0.0", 1), ("1.0", 3), ("NaN", 2)]
    node.must("verify", "t")


def test_operations_of_a_source_take_back_rows_of_the_other_zero(tmp_path: Path) -> None:
    node = make(tmp_path, "{kind: ChangelogStream, primaryKey: [k]}")
    ingest(node, {"op": 0, "k": "-0.0", "n": 1}, {"op": 0, "k": "NaN", "n": 2}, {"op": 0, "k": "0.0", "n": 3})

    ingest(node, {"op": 1, "k": "0.0", "n": 1}, {"op": 2, "k": "NaN", "n": 2}, {"op": 3, "k": "-0.0", "n": 2})

    assert state(node) == [("0.0", 2), ("0.0", 3)]
    node.must("verify", "t")


@pytest.mark.parametrize("kind", ["Float32", "Float64"])
def test_correction_finds_rows_by_either_zero_and_whether_they_are_current(tmp_path: Path, kind: str) -> None:
    node = make(tmp_path, "{kind: ChangelogStream, primaryKey: [n]}", kind=kind)
    ingest(node, {"op": 0, "k": "-0.0", "n": 1}, {"op": 0, "k": "0.0", "n": 2}, {"op": 0, "k": "NaN", "n": 3})
    ingest(node, {"op": 1, "k": "0.0", "n": 1}, {"op": 0, "k": "-0.0", "n": 4})

    node.must("correct", "t", "--set", "k = k + 1", "--where", "k = 0", "--reason", "both", "--yes")
    assert state(node) == [("1.0", 2), ("1.0", 4), ("NaN", 3)]
    node.must("correct", "t", "--retract", "--where", "isnan(k) AND n < 4", "--reason", "none", "--yes")
    assert state(node) == [("1.0", 2), ("1.0", 4)]

    gone = node.run("correct", "t", "--retract", "--where", "offset = 0", "--reason", "again", "--yes")
    assert gone.code != 0
    assert "all selected rows were retracted since" in gone.err
    node.must("verify", "t")


def test_correction_of_a_zero_to_the_other_is_none(tmp_path: Path) -> None:
    node = make(tmp_path, "{kind: Append}")
    ingest(node, {"k": "0.0", "n": 1})

    done = node.must("correct", "t", "--set", "k = -k", "--where", "true", "--reason", "sign", "--yes")

    assert "has these values already" in done.err
    assert state(node) == [("0.0", 1)]


def test_fixed_row_of_the_other_zero_has_the_key_of_the_row_that_is_there(tmp_path: Path) -> None:
    node = make(tmp_path, "{kind: UpsertStream, primaryKey: [k]}", rules=RULES)
    ingest(node, {"k": "-0.0", "n": 1}, {"k": "1", "n": 2})
    ingest(node, {"k": "0.0", "n": -7}, {"k": "2", "n": 3})

    node.must("quarantine", "fix", "t", "--set", "n=7")
    node.must("quarantine", "resend", "t")

    assert state(node) == [("0.0", 7), ("1.0", 2), ("2.0", 3)]
    node.must("verify", "t")


def test_query_of_a_user_compares_as_its_engine_does(tmp_path: Path) -> None:
    """What a condition of ``sql`` means is DataFusion's affair: -0.0 is below 0.0 there (QUERY-3)."""
    node = make(tmp_path, "{kind: Append}")
    ingest(node, {"k": "-0.0", "n": 1}, {"k": "0.0", "n": 2})

    found = node.must("sql", "-c", "SELECT n FROM t__state WHERE k < 0", "-o", "json").json()

    assert found == [{"n": 1}]


NAN, OTHER_NAN = math.nan, float(np.array([0xFFF8000000000001], "u8").view("f8")[0])
TIMES_MS = 1_600_000_000_000


@pytest.mark.spark
@pytest.mark.parametrize("kind", [DataTypeFloat32(), DataTypeFloat64()], ids=["float32", "float64"])
def test_view_of_spark_and_its_queries_fold_numbers_by_value(
    spark_session: EngineSession, tmp_path: Path, kind: DataType
) -> None:
    """Columns of numbers, and structs and lists of them, are folded by Spark itself."""
    x = DataField(name="x", type=DataTypeOption(inner=kind))
    columns = {"k": kind, "v": DataTypeStruct(fields=(x,)), "l": DataTypeList(item_type=DataTypeOption(inner=kind))}
    fields = [DataField(name=name, type=DataTypeOption(inner=each)) for name, each in columns.items()]
    schema = DataSchema(fields=(*system_fields(Vocabulary()), *fields))
    query = "SELECT max(event_time) AS event_time, k, count(*) AS n FROM orders GROUP BY k"

    def row(number: float, at: int) -> tuple[object, ...]:
        return TIMES_MS + at, number, {"x": number}, [number]

    changes = [
        [Change(0, row(-0.0, 0)), Change(0, row(NAN, 1)), Change(0, row(1.5, 2)), Change(0, row(0.0, 3))],
        [Change(1, row(0.0, 0)), Change(2, row(OTHER_NAN, 1)), Change(3, row(-0.0, 1))],
    ]
    view = View.over(spark_session, query, tmp_path, {"orders": schema})
    for each in changes:
        view.step({"orders": each})

    assert {each[1:]: n for each, n in fold(view.changes).items()} == {(1.5, 1): 1, (0.0, 2): 1}
    source = view.inputs["orders"]
    slices = (*source.earlier_slices, *source.slices)
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=schema, slices=slices)
    asked = QueryRequest(tables=(table,), sql="SELECT k, v.x AS x, l[0] AS l FROM orders__state ORDER BY event_time")
    answer = spark_session.query(asked)
    assert answer.rows_path is not None
    with answer.rows_path.open("rb") as file:
        found = table_in(file).to_pylist()
    assert [tuple(each.values()) for each in found] == [(0.0,) * 3, (1.5,) * 3, (0.0,) * 3]
