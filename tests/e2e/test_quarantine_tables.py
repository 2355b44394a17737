"""QUAR-6: what ingests did not take is a table of questions, whole and bounded."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import odf_node
from odf_engines.contract import Limits
from odf_engines.errors import InvalidQueryError
from odf_node.datasets.quarantine_table import MAX_COLUMNS
from odf_node.errors import UsageError
from odf_node.front import OpenNode
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      merge: {{ kind: Append }}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 1
              validators:
                - {{kind: Range, column: amount, least: 0, most: 100}}
                - {{kind: Required, columns: [amount]}}
"""
CSV = '{ kind: Csv, header: true, ddlSchema: ["id BIGINT", "amount BIGINT", "_row STRING"] }'
JSON = '{ kind: NdJson, ddlSchema: ["amount BIGINT"] }'
ROWS = b"id,amount,_row\n1,10,a\n2,-5,b\n3,,c\nx,y,d\n5,\xff,e\n"
DAYS = ("2024-02-01T00:00:00Z", "2024-02-02T00:00:00Z")
SETTINGS = '[engines]\ningest_first = "arrow"\nquery = "datafusion"\n'
DERIVED = """
kind: DatasetSnapshot
version: 1
content:
  name: derived
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: orders, alias: orders}]
      transform: {kind: Sql, engine: datafusion, query: "SELECT event_time, amount FROM orders"}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quarantine")
    made = RealNode(folder / "home", has_engine=True)
    reads = {"orders": CSV, "quiet": CSV, "wide": JSON}
    manifests = {name: MANIFEST.format(name=name, read=read) for name, read in reads.items()}
    for name, text in {**manifests, "derived": DERIVED}.items():
        (folder / name).write_text(text)
        made.must("add", str(folder / name), "--system-time", "2024-01-31T00:00:00Z")
    (folder / "home" / "odf-node.toml").write_text(SETTINGS)
    (folder / "rows.csv").write_bytes(ROWS)
    for day in DAYS:
        made.must("ingest", "orders", str(folder / "rows.csv"), "--system-time", day)
    return folder / "home"


@pytest.fixture
def node(home: Path) -> Iterator[OpenNode]:
    with odf_node.open(home) as opened:
        yield opened


def test_rows_stand_with_their_columns_as_sent_and_all_errors_of_all_stages(node: OpenNode) -> None:
    found = node.table("orders", as_of=DAYS[0]).quarantine().to_arrow()
    texts = found.select(["_record", "_line", "_stage", "_state", "id", "amount", "_row_2"]).to_pylist()
    assert [tuple(row.values()) for row in texts] == [
        (2, 3, "validate", "waits", "2", "-5", "b"),
        (3, 4, "validate", "waits", "3", None, "c"),
        (4, 5, "convert", "waits", "x", "y", "d"),
        (5, 6, "read", "waits", "5", r"\xff", "e"),
    ]
    assert {Path(source).name for source in found.column("_source").to_pylist()} == {"rows.csv"}
    assert found.column("_row").to_pylist() == ["1.1", "1.2", "1.3", "1.4"]
    negative, empty, unread, broken = found.column("_errors").to_pylist()
    assert negative == [
        {
            "stage": "validate",
            "plug_in": "Range",
            "code": "range",
            "column": "amount",
            "value": "-5",
            "expected": None,
            "message": "expected at least 0 and at most 100",
            "severity": "error",
        }
    ]
    assert [error["code"] for error in empty] == ["required"]
    assert [(error["column"], error["code"]) for error in unread] == [("id", "form"), ("amount", "form")]
    assert [(error["stage"], error["code"]) for error in broken] == [("read", "broken-record")]
    assert found.column("_original").to_pylist() == ["2,-5,b", "3,,c", "x,y,d", None]
    assert found.column("_original_bytes").to_pylist() == [None, None, None, b"5,\xff,e"]


def test_rows_are_read_without_an_engine_and_are_those_of_a_question(node: OpenNode) -> None:
    asked = node.sql("SELECT * FROM orders__quarantine").to_arrow().to_pylist()
    node.inner.engines.stop()
    assert node.table("orders").quarantine().to_arrow().to_pylist() == asked


def test_questions_count_errors_by_code_beside_other_tables(node: OpenNode) -> None:
    found = node.sql(
        "SELECT e['code'] AS code, count(*) AS rows FROM (SELECT unnest(_errors) AS e FROM orders__quarantine)"
        " GROUP BY 1 ORDER BY 1"
    )
    assert found.to_arrow().to_pylist() == [
        {"code": "broken-record", "rows": 2},
        {"code": "form", "rows": 4},
        {"code": "range", "rows": 2},
        {"code": "required", "rows": 2},
    ]
    both = node.sql("SELECT (SELECT count(*) FROM orders) AS good, (SELECT count(*) FROM orders__quarantine) AS bad")
    assert both.to_arrow().to_pylist() == [{"good": 2, "bad": 8}]


@pytest.mark.parametrize(("as_of", "rows"), [("2024-01-31", 0), (DAYS[0], 4), (None, 8)])
def test_rows_set_aside_later_are_not_seen(node: OpenNode, as_of: str | None, rows: int) -> None:
    assert len(node.table("orders", as_of=as_of).quarantine()) == rows


def test_dataset_without_a_bad_row_has_the_declared_columns(node: OpenNode) -> None:
    assert node.sql("SELECT id, amount FROM quiet__quarantine").to_arrow().num_rows == 0


def test_derivative_has_no_quarantine(node: OpenNode) -> None:
    with pytest.raises(UsageError, match="derivative"):
        node.table("derived").quarantine()
    with pytest.raises(InvalidQueryError, match="derived__quarantine"):
        node.sql("SELECT * FROM derived__quarantine")


def test_names_of_a_sender_never_grow_the_table_without_bound(home: Path, tmp_path: Path) -> None:
    names = "".join(f'"n{number}": "v", ' for number in range(2 * MAX_COLUMNS))
    (tmp_path / "rows.ndjson").write_text(f'{{{names}"amount": -1}}\n{{"AMOUNT": "1", "": "2", "_errors": "3"}}\n')
    RealNode(home).must("ingest", "wide", str(tmp_path / "rows.ndjson"))
    with odf_node.open(home) as node:
        found = node.table("wide").quarantine().to_arrow()
    ours = 11
    assert len(found.schema) == MAX_COLUMNS + ours
    assert found.column("amount").to_pylist() == ["-1", None]
    assert '"n1999": "v"' in found.column("_original").to_pylist()[0]


def test_more_than_an_engine_may_write_is_rejected_and_leaves_nothing(node: OpenNode) -> None:
    node.inner.engines.limits = Limits(output_bytes=1000)
    with pytest.raises(UsageError, match="quarantine show orders"):
        node.table("orders").quarantine()
    assert not [*node.inner.engines.workspace.glob("set-aside-*")]


@pytest.mark.spark
def test_spark_sees_the_same_table(home: Path, spark_engine: object) -> None:
    with odf_node.open(home) as node:
        query = "SELECT _row, _line, amount, size(_errors) AS errors, _errors[0].code AS code FROM orders__quarantine"
        found: pa.Table = node.sql(f"{query} ORDER BY _row", engine="spark", max_rows=4).to_arrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("1.1", 3, "-5", 1, "range"),
        ("1.2", 4, None, 1, "required"),
        ("1.3", 5, "y", 2, "form"),
        ("1.4", 6, r"\xff", 1, "broken-record"),
    ]
