"""Whatever reads a dataset goes on when it gains a column: Flight SQL, pages, exports, windows, joins as of a time.

Clause SCHEMA-5; merges, queries and other derivatives are in ``test_evolving_datasets.py``.
"""

import json
import urllib.request
from pathlib import Path

import adbc_driver_flightsql.dbapi as adbc
import pytest

from support.daemons import daemon
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, ddlSchema: [event_time TIMESTAMP, k STRING, {more}n INT]}}
      merge: {{kind: Append}}
"""
DERIVED = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: sales, alias: sales}}, {{datasetRef: rates, alias: rates}}]
      transform:
        kind: Sql
        engine: spark
        {temporal}
        query: |
          {query}
"""
WINDOW = (
    "SELECT window.end AS event_time, k, sum(n) AS n FROM (SELECT event_time, k, n FROM sales UNION ALL "
    "SELECT event_time, k, n FROM rates) GROUP BY window(event_time, '1 hour'), k"
)
AS_OF = (
    "SELECT s.event_time, s.k, s.n * r.n AS n FROM sales AS s "
    "LEFT JOIN rates FOR SYSTEM_TIME AS OF s.event_time AS r ON s.k = r.k"
)
DERIVATIVES = {"hours": (WINDOW, ""), "paid": (AS_OF, "temporalTables: [{name: rates, primaryKey: [k]}]")}


def at(hour: int, **values: object) -> dict[str, object]:
    return {"event_time": f"2024-01-01T{hour:02}:00:00Z", "k": "a", **values}


def declare(node: RealNode, name: str, *options: str, more: str = "") -> None:
    path = node.home.parent / f"{name}.yaml"
    path.write_text(ROOT.format(name=name, more=more))
    node.must("add", str(path), *options)


def ingest(node: RealNode, name: str, *rows: dict[str, object]) -> None:
    ran = node.run("ingest", name, "--stdin", standard_input="".join(json.dumps(row) + "\n" for row in rows))
    assert ran.code == 0, ran.err


def evolve(node: RealNode) -> None:
    for name in ("sales", "rates"):
        declare(node, name, "--replace", "--evolve", more="extra STRING, ")


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home")


def test_flight_pages_and_exports_have_old_and_new_rows_schema_5(node: RealNode, tmp_path: Path) -> None:
    declare(node, "sales")
    declare(node, "rates")
    ingest(node, "sales", at(1, n=1))
    evolve(node)
    ingest(node, "sales", at(2, n=2, extra="x"))
    settings = '[listen]\nport = 0\nflight_port = 0\n[access]\npages = "everyone"\n'
    with daemon(node.home, settings=settings) as serving:
        url = serving.wait_for("flight")[0]["url"]
        with adbc.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT extra, n FROM sales ORDER BY n")
            assert cursor.fetchall() == [(None, 1), ("x", 2)]
            cursor.execute("SELECT * FROM sales")
            assert cursor.fetch_arrow_table().schema.names[3:] == ["event_time", "k", "extra", "n"]
        with urllib.request.urlopen(f"{serving.url}/-/datasets/sales/rows", timeout=240) as answer:
            page = answer.read().decode()
        assert ">extra<" in page.replace("\n", "")
    node.must("export", "sales", "--to", str(tmp_path / "out"))
    other = RealNode(tmp_path / "other")
    other.must("pull", f"file://{tmp_path}/out/sales", "--as", "sales")
    query = ("sql", "-c", "SELECT extra, n FROM sales ORDER BY n", "-o", "json")
    assert other.must(*query).json() == node.must(*query).json() == [{"extra": None, "n": 1}, {"extra": "x", "n": 2}]


@pytest.mark.spark
@pytest.mark.parametrize("name", DERIVATIVES)
def test_windows_and_joins_as_of_a_time_go_on_over_a_new_column_schema_5(name: str, tmp_path: Path) -> None:
    """What closes after the change has rows of before and after, and all steps are re-executed."""
    node = RealNode(tmp_path / "home", has_engine=True)
    declare(node, "sales")
    declare(node, "rates")
    query, temporal = DERIVATIVES[name]
    path = tmp_path / f"{name}.yaml"
    path.write_text(DERIVED.format(name=name, query=query, temporal=temporal))
    node.must("add", str(path))
    ingest(node, "rates", at(0, n=10))
    ingest(node, "sales", at(1, n=1))
    node.must("pull", name)
    evolve(node)
    ingest(node, "sales", at(1, n=2, extra="x"), at(4, n=3, extra="y"))
    ingest(node, "rates", at(2, n=100, extra="z"), at(5, n=5))
    node.must("pull", name)
    # The window from 4 to 5 is still open: the watermark of the sales is 4.
    rows = node.must("sql", "-c", f"SELECT event_time, n FROM {name} ORDER BY n", "-o", "json").json()
    expected = {"hours": [3, 10, 100], "paid": [10, 20, 300]}[name]
    assert sorted(row["n"] for row in rows) == sorted(expected)
    assert "re-executed" in node.must("verify", name, "--all").out
