"""Derivatives over many rows, each step bounded in rows and within the engine's memory: a map, and a maintained view.

Makes a root of Parquet files, a block each, and derives from it with steps of some blocks. Says for each derivative how
many steps there were, how long they took, and the most memory that the command and all its processes held at once; the
engine's own limit is 2 GiB, and crossing it would end the step. Ends with code 1 if a derivative is not complete.

Run: python tests/benchmarks/bench_bounded_steps.py [MILLIONS_OF_ROWS [MILLIONS_PER_STEP [map|view]]]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.sandbox.resources import usage_of

MIB = 1024 * 1024
FILE_ROWS = 1_000_000
GROUP_ROWS = 125_000
GROUPS = 1_000
ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: measured
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: files
      read: {kind: Parquet}
      merge: {kind: Append}
"""
DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: measured, alias: m}}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""
QUERIES = {
    "map": "SELECT event_time, id, trim(status) AS status, amount * 2 AS twice FROM m WHERE amount % 10 > 0",
    "view": "SELECT max(event_time) AS event_time, amount, count(1) AS n, sum(id) AS total FROM m GROUP BY amount",
}

# A view's log also has what it took back; what the groups in force counted are all rows of the input.
QUERY_SERVICE = {
    "map": "SELECT count(1) AS found FROM map",
    "view": "SELECT sum(CASE WHEN op IN (0, 3) THEN n ELSE -n END) AS found FROM view",
}
COUNTED = {"map": "rows", "view": "rows counted in its groups"}


def write_files(folder: Path, rows: int) -> Iterator[Path]:
    """Write rows whose columns do not compress to nothing, a million to a file."""
    words = pa.array([f"status number {number}" for number in range(997)])
    for first in range(0, rows, FILE_ROWS):
        numbers = np.arange(first, min(first + FILE_ROWS, rows), dtype=np.int64)
        scattered = (numbers * 2_654_435_761) % 2**32
        times = pa.array(numbers + 1_700_000_000_000).cast(pa.timestamp("ms", "UTC"))
        columns = {
            "event_time": times, "id": scattered, "status": words.take(pa.array(scattered % 997)),
            "amount": numbers % GROUPS,
        }  # fmt: skip
        path = folder / f"{first // FILE_ROWS:05}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=GROUP_ROWS)
        yield path


def run(home: Path, *words: str, step_rows: int = 20_000_000) -> tuple[str, float, int]:
    """Run a command that has to succeed; return what it said, its time in seconds and its most memory in bytes."""
    environment = {
        **os.environ, "ODF_NODE_HOME": str(home),
        "ODF_NODE_ENGINES_STEP_ROWS": str(step_rows),
    }  # fmt: skip
    started, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile() as out:
        command = subprocess.Popen([sys.executable, "-m", "odf_node", *words], stdout=out, env=environment)
        while command.poll() is None:
            peak = max(peak, usage_of(command.pid).memory_bytes)
            time.sleep(0.2)
        out.seek(0)
        stated = out.read().decode()
    if command.returncode != 0:
        raise SystemExit(f"{words}: ended with code {command.returncode}: {stated}")
    return stated, time.perf_counter() - started, peak


def main() -> int:
    """Print the figures."""
    rows = int(float(sys.argv[1]) * 1_000_000) if len(sys.argv) > 1 else 10_000_000
    step_rows = int(float(sys.argv[2]) * 1_000_000) if len(sys.argv) > 2 else 2_000_000
    kinds = sys.argv[3:] or list(QUERIES)
    expected = {"map": rows - len(range(0, rows, 10)), "view": rows}
    is_complete = True
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder, home = Path(name), Path(name) / "home"
        (folder / "measured.yaml").write_text(ROOT)
        run(home, "add", str(folder / "measured.yaml"))
        for path in write_files(folder, rows):
            _stated, ingested_s, _peak = run(home, "ingest", "measured", str(path))
            path.unlink()
        print(f"{rows:,} rows, a block for each million; the last was ingested in {ingested_s:.1f} s")
        for kind in kinds:
            (folder / f"{kind}.yaml").write_text(DERIVATIVE.format(name=kind, query=QUERIES[kind]))
            run(home, "add", "-q", str(folder / f"{kind}.yaml"))
            _stated, taken_s, peak = run(home, "pull", kind, step_rows=step_rows)
            log, _, _ = run(home, "log", kind, "-o", "oneline", "--all")
            steps = log.count(" ExecuteTransform ")
            reported, _, _ = run(home, "sql", "-c", QUERY_SERVICE[kind], "-o", "json")
            found = json.loads(reported)[0]["found"]
            is_complete &= found == expected[kind]
            print(
                f"{kind}: {steps} steps of at most {step_rows:,} rows, {taken_s:.1f} s;"
                f" most memory {peak / MIB:,.0f} MiB; {COUNTED[kind]} {found:,} (expected {expected[kind]:,})"
            )
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
