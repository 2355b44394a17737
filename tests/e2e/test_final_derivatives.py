"""Final derivatives through nodes: sessions and joins as of a time, step by step, and re-executed by another node."""

import json
from pathlib import Path

import pytest

from support.nodes import RealNode
from support.warm_engine import lent_to_untrusted

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {{name: event_time, type: {{kind: Option, inner: {{kind: Timestamp}}}}}}
            - {{name: key, type: {{kind: Option, inner: String}}}}
            - {{name: amount, type: {{kind: Option, inner: Int64}}}}
      merge: {{kind: Append}}
---
"""
AS_OF = """
kind: DatasetSnapshot
version: 1
content:
  name: in.force
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: sales, alias: sales}, {datasetRef: rates, alias: rates}]
      transform:
        kind: Sql
        engine: flink
        temporalTables: [{name: rates, primaryKey: [key]}]
        query: |
          SELECT s.event_time, s.`key`, s.amount * r.amount AS paid FROM sales AS s
          LEFT JOIN rates FOR SYSTEM_TIME AS OF s.event_time AS r ON s.`key` = r.`key`
---
kind: DatasetSnapshot
version: 1
content:
  name: visits
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: sales, alias: sales}]
      transform:
        kind: Sql
        engine: flink
        query: |
          SELECT SESSION_END(event_time, INTERVAL '2' HOUR) AS event_time, `key`, COUNT(*) AS n FROM sales
          GROUP BY SESSION(event_time, INTERVAL '2' HOUR), `key`
---
kind: DatasetSnapshot
version: 1
content:
  name: by.key
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: sales, alias: sales}, {datasetRef: rates, alias: rates}]
      transform:
        kind: Sql
        engine: flink
        temporalTables: [{name: rates, primaryKey: [key]}]
        queries:
          - alias: priced
            query: |
              SELECT s.event_time, s.`key`, s.amount * r.amount AS paid FROM sales AS s
              LEFT JOIN rates FOR SYSTEM_TIME AS OF s.event_time AS r ON s.`key` = r.`key`
          - query: SELECT MAX(event_time) AS event_time, `key`, SUM(paid) AS paid FROM priced GROUP BY `key`
---
kind: DatasetSnapshot
version: 1
content:
  name: hours
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: sales, alias: sales}, {datasetRef: rates, alias: rates}]
      transform:
        kind: Sql
        engine: flink
        temporalTables: [{name: rates, primaryKey: [key]}]
        query: |
          SELECT TUMBLE_END(s.event_time, INTERVAL '1' HOUR) AS event_time, SUM(s.amount * r.amount) AS paid
          FROM sales AS s LEFT JOIN rates FOR SYSTEM_TIME AS OF s.event_time AS r ON s.`key` = r.`key`
          GROUP BY TUMBLE(s.event_time, INTERVAL '1' HOUR)
"""
OVER_A_VIEW = """
kind: DatasetSnapshot
version: 1
content:
  name: never
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: by.key, alias: paid}]
      transform:
        kind: Sql
        engine: spark
        query: SELECT window.end AS event_time, SUM(paid) AS paid FROM paid GROUP BY window(event_time, '1 hour')
"""


def line(hour: int, key: str, amount: int) -> str:
    return f'{{"event_time": "2024-01-01T{hour:02}:00:00Z", "key": "{key}", "amount": {amount}}}\n'


def rows(node: RealNode, name: str) -> list[tuple[object, ...]]:
    found = node.must("tail", name, "-n", "100", "-o", "json").json()
    return [(row["op"], row["event_time"][11:13], *list(row.values())[4:]) for row in found]


def ingest(node: RealNode, folder: Path, name: str, *lines: str) -> None:
    (folder / "new.ndjson").write_text("".join(lines))
    node.must("ingest", name, str(folder / "new.ndjson"))


def test_final_derivatives_for_flink_run_step_by_step_and_are_re_executed(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "node", has_engine=True)
    (tmp_path / "all.yaml").write_text(ROOT.format(name="sales") + ROOT.format(name="rates") + AS_OF)
    refused = node.run("add", str(tmp_path / "all.yaml"))
    assert (refused.code, node.must("list", "-o", "json").json()) == (8, [])
    added = node.must("add", "--as-spark", str(tmp_path / "all.yaml"))
    assert "-  SESSION_END(event_time, INTERVAL '2' HOUR) AS event_time," in added.err
    assert "+  session_window.end AS event_time," in added.err
    assert "look at Flink leaves late rows out" in added.err

    ingest(node, tmp_path, "sales", line(1, "a", 10), line(2, "a", 1), line(2, "b", 7))
    ingest(node, tmp_path, "rates", line(0, "a", 2), line(1, "b", 5))
    node.must("pull", "in.force", "visits", "by.key", "hours")
    assert rows(node, "in.force") == [(0, "01", "a", 20)]
    assert rows(node, "by.key") == [(0, "01", "a", 20)]
    assert rows(node, "visits") == rows(node, "hours") == []

    ingest(node, tmp_path, "rates", line(2, "b", 6), line(4, "a", 3))
    ingest(
        node, tmp_path, "sales", line(4, "b", 1), line(1, "c", 9)
    )  # the second is late for a session, not for a join
    pulled = node.must("pull", "in.force", "visits", "by.key", "hours", "-o", "json").json()
    assert {each["dataset"]: (each["readRows"], each["lateRows"]) for each in pulled} == {
        "in.force": (9, 0),
        "visits": (5, 1),
        "by.key": (9, 0),
        "hours": (9, 1),
    }
    assert rows(node, "by.key")[1:] == [
        (2, "01", "a", 20),
        (3, "02", "a", 22),
        (0, "04", "b", 48),
        (0, "01", "c", None),
    ]
    assert rows(node, "hours") == [(0, "02", 20), (0, "03", 44)]  # without the late one
    assert sorted(rows(node, "in.force")[1:], key=str) == [
        (0, "01", "c", None),
        (0, "02", "a", 2),
        (0, "02", "b", 42),
        (0, "04", "b", 6),
    ]
    assert rows(node, "visits") == []  # what could still join them has not passed
    (tmp_path / "over.yaml").write_text(OVER_A_VIEW)
    plan_of_more = node.must("inspect", "plan", str(tmp_path / "over.yaml")).out
    assert "no watermark" not in plan_of_more  # a view states that of its inputs (VIEW-8)
    assert "2024-01-01T04:00:00Z" in plan_of_more
    assert "no watermark" not in node.must("inspect", "plan", "hours").out
    plan = node.must("inspect", "plan", "in.force", "--json").json()[0]
    assert (plan["class"], plan["isDue"]) == ("final", False)
    assert [each["readRows"] for each in plan["inputs"]] == [5, 4]

    # What was late stays late in later steps.
    ingest(node, tmp_path, "sales", line(9, "a", 1), line(3, "a", 1))
    assert "visits: 1 row of its inputs came too late" in node.must("pull", "visits", "in.force").out
    assert rows(node, "visits") == [(0, "04", "a", 2), (0, "06", "b", 2)]

    steps = [json.loads(line).get("statistics") for line in node.must("log", "visits", "-o", "json").out.splitlines()]
    late = [step["lateRows"] for step in steps if step]
    assert late == [1, 1, 0]  # newest first; re-execution below counts them too (REPLAY-14)

    node.must("pull", "by.key")
    assert rows(node, "by.key")[5:] == [(2, "02", "a", 22), (3, "03", "a", 24)]

    ingest(node, tmp_path, "rates", line(9, "a", 4))
    (pulled,) = node.must("pull", "hours", "-o", "json").json()
    # All five versions, and of the sales all but the first subset, which is older than any window that is open.
    assert (pulled["readRows"], pulled["lateRows"]) == (5 + 4, 1)
    assert rows(node, "hours")[2:] == [(0, "05", 6)]

    given = {name: rows(node, name) for name in ("in.force", "visits", "by.key", "hours")}
    other = RealNode(tmp_path / "other", has_engine=True)
    with node.serving() as url, lent_to_untrusted():
        for name in ("sales", "rates"):
            other.must("pull", f"{url}/{name}")
        for name, expected in given.items():
            (taken,) = other.must("pull", f"{url}/{name}", "-o", "json").json()
            assert (taken["trust"], taken["partial"]) == ("re-executed", None)
            assert rows(other, name) == expected
