"""A derivative of many small steps, made and re-executed: how long each step takes, and in what.

A root of a hundred slices and a derivative that read each of them in a step of its own. What is measured is the making
of the steps, ``verify`` with re-execution of all of them in one engine, and, for comparison, ``verify`` without it and
one engine process from start to end.

Run: python tests/benchmarks/bench_replay.py [STEPS]
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits
from odf_node.composition import Node, open_node
from odf_node.ports.progress import Silence
from odf_spark.engine import SparkEngine
from support.city_datasets import COLUMNS, derivative_manifest, root_manifest
from support.stores import find_named
from support.transforms import orders_input, transform_request, write_orders

GOAL_S = 0.3
STEPS = 100
ROWS = 100
HIGH = "SELECT event_time, upper(city) AS city, value * 2 AS twice FROM readings WHERE value % 10 <> 0"
MANIFESTS = "---".join(
    (
        root_manifest("readings", columns=COLUMNS.replace("people", "value")),
        derivative_manifest(
            "high.readings", f"{{kind: Sql, engine: spark, query: '{HIGH}'}}", source="readings", alias="readings"
        ),
    )
)


def make_steps(node: Node, folder: Path, steps: int) -> float:
    """Make slices and steps in turn; return the seconds of the steps alone."""
    taken_s = 0.0
    record = find_named(node.store, "readings")
    for step in range(steps):
        path = folder / "rows.ndjson"
        times = (f"2024-01-01T{step // 60:02}:{step % 60:02}:{row % 60:02}Z" for row in range(ROWS))
        path.write_text("".join(f'{{"event_time": "{at}", "city": "c{step}", "value": {step}}}\n' for at in times))
        assert record is not None
        record = node.ingestor.push(
            record, path, source_name=None, shown_as="rows", event_time=None, system_time=node.now()
        ).record
        derivative = find_named(node.store, "high.readings")
        assert derivative is not None
        started = time.perf_counter()
        node.transformer.run_next(derivative, system_time=node.now())
        taken_s += time.perf_counter() - started
    return taken_s


def cold(engine: SparkEngine, folder: Path) -> float:
    """Run one step in a process of its own; return seconds from start to end."""
    source = write_orders(folder / "0.parquet", [(row, 0, row, row, "a", 1.0) for row in range(ROWS)])
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder) as workspace, engine.open(Path(workspace), Limits()) as session:
        session.transform(transform_request("SELECT event_time, id FROM orders", orders_input([source], (0, ROWS - 1))))
    return time.perf_counter() - started


def main() -> None:
    """Print seconds per step."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    engine = SparkEngine()
    engine.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "manifests.yaml").write_text(MANIFESTS)
        node = open_node(folder / "home")
        try:
            from support.nodes import RealNode

            RealNode(folder / "home").must("add", str(folder / "manifests.yaml"))
            made_s = make_steps(node, folder, steps)
            (record,) = node.verifier.select(["high.readings"], recursive=False)
            seconds = []
            for replay in (False, True):
                started = time.perf_counter()
                finding = node.verifier.verify(record, replay=replay, on_progress=Silence().on_progress)
                seconds.append(time.perf_counter() - started)
                assert finding.is_valid, list(finding.describe())
        finally:
            node.close()
        cold_s = cold(engine, folder)
    hashes_s, step_s = seconds
    print(f"{steps} steps of {ROWS} rows")
    print(f"made, each:                    {made_s / steps:6.3f} s")
    print(f"re-executed, each, with start: {step_s / steps:6.3f} s (goal {GOAL_S})")
    print(f"verified by hashes, each:      {hashes_s / steps:6.3f} s")
    print(f"a process for one step:        {cold_s:6.3f} s, {cold_s / (step_s / steps):.0f} times as long")


if __name__ == "__main__":
    main()
