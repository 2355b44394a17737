"""Steps of final derivatives after 10, 100 and 1,000 subsets of their inputs: ``bench_window_steps.py [SUBSETS...]``.

Two roots gain a subset of some hundred rows, and a watermark with it, before each step of a tumbling window,
sessions, a join as of a time, and a window over a join with a bound in event time. Prints, of the last ten steps at
each number of subsets, the median seconds by the clock and of processors, how many times as long as with the fewest
subsets the processors took, how many rows of the inputs the last one read, and where its time went. Node and engine
run as they do in a daemon: one process each, warm.
"""

import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_node.composition import Node, open_node
from odf_node.derive.step_log import StepLog
from odf_protocol.timestamp import Timestamp
from odf_spark.engine import SparkEngine
from support.nodes import RealNode
from support.processor_time import spent_s
from support.stores import find_named

SUBSETS = (10, 100, 1_000)
STEPS = 10
AT_ONCE = 50
ROWS = 300
SUBSET_MS = 3_600_000
START_MS = 1_700_000_000_000 // SUBSET_MS * SUBSET_MS
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
    return Timestamp.from_unix_ms(START_MS + row * SUBSET_MS // ROWS)


def gain(node: Node, folder: Path, subset: int) -> None:
    """Let each root gain a subset: an hour of rows, in bursts of one key."""
    for name in ("orders", "rates"):
        path = folder / "rows.ndjson"
        first = subset * ROWS
        path.write_text(
            "".join(
                f'{{"event_time": "{time_of(number)}", "k": {number // BURST % KEYS}, "a": {number % 97}}}\n'
                for number in range(first, first + ROWS)
            )
        )
        record = find_named(node.store, name)
        assert record is not None
        node.ingestor.push(record, path, source_name=None, shown_as="rows", event_time=None, system_time=node.now())


@dataclass(frozen=True)
class Step:
    """A step: its seconds by the clock and of processors, what took how long, and the rows that it read."""

    seconds: float
    spent_s: float
    milliseconds: dict[str, int]
    read_rows: int


def make_step(node: Node, name: str) -> Step:
    """Make a step."""
    record = find_named(node.store, name)
    assert record is not None
    started, before = time.perf_counter(), spent_s()
    report = node.transformer.run_next(record, system_time=node.now())
    seconds, spent = time.perf_counter() - started, spent_s() - before
    assert report.new_rows, name
    made = StepLog(node.store).find_newest(report.record)
    assert made is not None
    return Step(seconds, spent, dict(made.statistics.milliseconds), report.read_rows)


def measure(node: Node, folder: Path, first: int, subsets: int) -> dict[str, list[Step]]:
    """Go on from ``first`` to so many subsets, the last ten of them a step each."""
    for subset in range(first, subsets - STEPS):
        gain(node, folder, subset)
        if subset % AT_ONCE == AT_ONCE - 1 or subset == subsets - STEPS - 1:
            for name in QUERIES:
                record = find_named(node.store, name)
                assert record is not None
                node.transformer.run(record, writing_time=node.now)
    made = defaultdict(list)
    for subset in range(max(first, subsets - STEPS), subsets):
        gain(node, folder, subset)
        for name in QUERIES:
            if subset:  # the first window is closed by the second subset
                made[name].append(make_step(node, name))
    return made


def main(subsets: list[int]) -> None:
    """Print the table."""
    SparkEngine().prepare()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # the engine ends behind us
        folder = Path(name)
        add_all(folder, folder / "home")
        node = open_node(folder / "home")
        fewest: dict[str, float] = {}
        try:
            for first, last in zip([0, *subsets], subsets, strict=False):
                made = measure(node, folder, first, last)
                for query, steps in made.items():
                    seconds = statistics.median(each.seconds for each in steps)
                    spent = statistics.median(each.spent_s for each in steps)
                    named = steps[-1].milliseconds
                    parts = {
                        part: statistics.median(each.milliseconds.get(part, 0) for each in steps) for part in named
                    }
                    ratio = spent / fewest.setdefault(query, spent)
                    reported = ", ".join(f"{part} {took:.0f}" for part, took in parts.items())
                    print(
                        f"{last:5} subsets, {query:8} {seconds:6.3f} s, {spent:6.3f} s of processors,"
                        f" {ratio:4.1f} times; {steps[-1].read_rows:7} rows; ms: {reported}",
                        flush=True,
                    )
        finally:
            node.close()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or list(SUBSETS))
