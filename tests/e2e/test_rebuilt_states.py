"""A projected state that is made anew from slices has the current rows, whatever the order within a block (ING-12)."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.nodes import RealNode

ROOT = """kind: DatasetSnapshot
version: 1
content:
  name: prices
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, schema: {{fields: [{op}{{name: event_time, type: {{kind: Timestamp}}}}, {{name: k, type: {{kind: Int64}}}}, {{name: v, type: {{kind: String}}}}]}}}}
      merge: {merge}
"""  # noqa: E501
OP = "{name: op, type: {kind: Int32}}, "
NOON = "2024-01-01T12:00:00Z"
STREAM = "{kind: ChangelogStream, primaryKey: [k]}"
SNAPSHOT = "{kind: Snapshot, primaryKey: [k]}"
UPSERT = "{kind: UpsertStream, primaryKey: [k]}"

pytestmark = pytest.mark.usefixtures("light_engines")


class Prices:
    """A dataset whose rows come by a changelog, and then by another merge strategy."""

    def __init__(self, folder: Path) -> None:
        self.node, self.folder = RealNode(folder / "home"), folder
        self._define("add", ROOT.format(op=OP, merge=STREAM))

    def _define(self, command: str, text: str) -> None:
        path = self.folder / "prices.yaml"
        path.write_text(text, encoding="utf-8")
        words = ("add", str(path)) if command == "add" else ("change", "prices", str(path))
        self.node.must(*words)

    def change(self, merge: str) -> None:
        self._define("change", ROOT.format(op="", merge=merge))

    def ingest(self, *rows: dict[str, Any]) -> None:
        path = self.folder / "rows.ndjson"
        path.write_text("\n".join(map(json.dumps, ({"event_time": NOON} | each for each in rows))), encoding="utf-8")
        self.node.must("ingest", "prices", str(path))

    def current(self) -> list[tuple[int, str]]:
        found = self.node.must("sql", "-c", "SELECT k, v FROM prices__state ORDER BY k, v", "-o", "json").json()
        return [(each["k"], each["v"]) for each in found]


def change(op: int, key: int, value: str) -> dict[str, Any]:
    return {"op": op, "k": key, "v": value}


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    """A row was given before the one that it stands for was taken, in one block."""
    prices = Prices(tmp_path)
    prices.ingest(change(0, 1, "old"), change(0, 2, "stays"))
    prices.ingest(change(0, 1, "new"), change(1, 1, "old"))
    assert prices.current() == [(1, "new"), (2, "stays")]
    return prices


def test_row_that_was_given_before_another_one_was_taken_is_corrected(prices: Prices) -> None:
    prices.change(UPSERT)

    prices.ingest({"k": 1, "v": "newest"})

    assert prices.current() == [(1, "newest"), (2, "stays")]


def test_row_that_was_given_before_another_one_was_taken_is_retracted_where_it_is_missing(prices: Prices) -> None:
    prices.change(SNAPSHOT)

    prices.ingest({"k": 2, "v": "stays"})

    assert prices.current() == [(2, "stays")]


def test_row_that_was_given_and_taken_in_one_block_is_new(tmp_path: Path) -> None:
    prices = Prices(tmp_path)
    prices.ingest(change(1, 1, "gone"), change(0, 1, "gone"), change(0, 2, "stays"))
    prices.change(UPSERT)

    prices.ingest({"k": 1, "v": "came"})

    assert prices.current() == [(1, "came"), (2, "stays")]


def test_retraction_with_other_values_takes_no_other_row(tmp_path: Path) -> None:
    prices = Prices(tmp_path)
    prices.ingest(change(0, 1, "given"))
    prices.ingest(change(1, 1, "never given"))
    prices.change(SNAPSHOT)

    prices.ingest({"k": 1, "v": "true"})

    assert prices.current() == [(1, "true")]
