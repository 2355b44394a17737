"""Steps of final derivatives after 10, 100 and 1,000 portions of their inputs: ``bench_window_steps.py [PORTIONS...]``.

Two roots gain a portion of some hundred rows, and a watermark with it, before each step of a tumbling window,
sessions, a join as of a time, and a window over a join with a bound in event time. Prints the median of the last ten
steps at each number of portions, how many times as long it took as with the fewest portions, how many rows of the
inputs it read, and where its time went. Node and engine run as they do in a daemon: one process each, warm.
"""

import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.spark.engine import SparkEngine
from odf_node.composition import Node, open_node
from odf_node.derive.step_log import StepLog
from odf_protocol.timestamp import Timestamp
from support.nodes import RealNode
from support.stores import find_named

PORTIONS = (10, 100, 1_000)
STEPS = 10
AT_ONCE = 50
ROWS = 300
PORTION_MS = 3_600_000
START_MS = 1_700_000_000_000 // PORTION_MS * PORTION_MS
KEYS = 50
BURST = 20
ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: rows
      read: {{kind: NdJson, ddlSchema: ["event_time TIMESTAMP", "k BIGINT", "a BIGINT"]}}
      merge: {{kind: Append}}
"""
DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{inputs}]
      transform: {{kind: Sql, engine: spark{tables}, query: "{query}"}}
"""
RATES = ", temporalTables: [{name: rates, primaryKey: [k]}]"
AS_OF = "JOIN rates FOR SYSTEM_TIME AS OF o.event_time AS r ON o.k = r.k"
BETWEEN = "r.event_time BETWEEN o.event_time - INTERVAL 30 MINUTES AND o.event_time"
QUERIES = {
    "window": """
        SELECT window.end AS event_time, k, count(1) AS n, sum(a) AS a FROM orders
        GROUP BY window(event_time, '1 hour'), k
    """,
    "sessions": """
        SELECT session_window.end AS event_time, k, count(1) AS n, sum(a) AS a FROM orders
        GROUP BY session_window(event_time, '5 minutes'), k
    """,
    "asof": f"SELECT o.event_time, o.k, o.a, r.a AS rate FROM orders AS o {AS_OF}",
    "joined": f"""
        SELECT window.end AS event_time, k, count(1) AS n FROM (
            SELECT o.event_time, o.k FROM orders AS o JOIN rates AS r ON o.k = r.k AND {BETWEEN}
        ) GROUP BY window(event_time, '1 hour'), k
    """,
}


def add_all(folder: Path, home: Path) -> None:
    """Declare the roots and what is derived from them."""
    manifests = [ROOT.format(name=name) for name in ("orders", "rates")]
    for name, query in QUERIES.items():
        inputs = ", ".join(f"{{datasetRef: {each}, alias: {each}}}" for each in ("orders", "rates") if each in query)
        tables = RATES if name == "asof" else ""
        manifests.append(DERIVATIVE.format(name=name, inputs=inputs, tables=tables, query=" ".join(query.split())))
    (folder / "manifests.yaml").write_text("---".join(manifests))
    RealNode(home).must("add", str(folder / "manifests.yaml"))


def time_of(row: int) -> Timestamp:
    """When a row happened."""
    return Timestamp.from_unix_ms(START_MS + row * PORTION_MS // ROWS)


def gain(node: Node, folder: Path, portion: int) -> None:
    """Let each root gain a portion: an hour of rows, in bursts of one key."""
    for name in ("orders", "rates"):
        path = folder / "rows.ndjson"
        first = portion * ROWS
        path.write_text(
            "".join(
                f'{{"event_time": "{time_of(number)}", "k": {number // BURST % KEYS}, "a": {number % 97}}}\n'
                for number in range(first, first + ROWS)
            )
        )
        record = find_named(node.store, name)
        assert record is not None
        node.ingestor.push(record, path, source_name=None, shown_as="rows", event_time=None, system_time=node.now())


def make_step(node: Node, name: str) -> tuple[float, dict[str, int], int]:
    """Make a step; return its seconds, what took how many milliseconds, and the rows that it read."""
    record = find_named(node.store, name)
    assert record is not None
    started = time.perf_counter()
    report = node.transformer.run_next(record, system_time=node.now())
    seconds = time.perf_counter() - started
    assert report.new_rows, name
    made = StepLog(node.chains, node.evidence).find_newest(report.record)
    assert made is not None
    return seconds, dict(made.statistics.milliseconds), report.read_rows


def measure(node: Node, folder: Path, first: int, portions: int) -> dict[str, list[tuple[float, dict[str, int], int]]]:
    """Go on from ``first`` to so many portions, the last ten of them a step each."""
    for portion in range(first, portions - STEPS):
        gain(node, folder, portion)
        if portion % AT_ONCE == AT_ONCE - 1 or portion == portions - STEPS - 1:
            for name in QUERIES:
                record = find_named(node.store, name)
                assert record is not None
                node.transformer.run(record, writing_time=node.now)
    made = defaultdict(list)
    for portion in range(max(first, portions - STEPS), portions):
        gain(node, folder, portion)
        for name in QUERIES:
            if portion:  # the first window is closed by the second portion
                made[name].append(make_step(node, name))
    return made


def main(portions: list[int]) -> None:
    """Print the table."""
    SparkEngine().prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        add_all(folder, folder / "home")
        node = open_node(folder / "home")
        fewest: dict[str, float] = {}
        try:
            for first, last in zip([0, *portions], portions, strict=False):
                made = measure(node, folder, first, last)
                for query, steps in made.items():
                    seconds = statistics.median(each[0] for each in steps)
                    parts = {part: statistics.median(each[1].get(part, 0) for each in steps) for part in steps[-1][1]}
                    ratio = seconds / fewest.setdefault(query, seconds)
                    told = ", ".join(f"{part} {spent:.0f}" for part, spent in parts.items())
                    print(
                        f"{last:5} portions, {query:8} {seconds:6.3f} s, {ratio:4.1f} times;"
                        f" {steps[-1][2]:7} rows; ms: {told}",
                        flush=True,
                    )
        finally:
            node.close()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or list(PORTIONS))
