"""A map over ten million rows: our engine with sandbox, changelog and hash, against plain Spark from file to file.

Both read the same slice, project and filter it by the same query, and write Parquet; ours also fixes the operations,
writes one file in the order of the input, checks it in a sandbox of its own and hashes it: rows on the way through the
check, bytes afterwards. Both are taken in turn; the best of several rounds counts, since other work on the machine only
ever adds. Processor time is that of whole processes from start to end.

Run: python tests/benchmarks/bench_map_transform.py [ROWS]
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits
from odf_node.rows.file_hashes import physical_hash_of
from odf_protocol.schema_arrow import arrow_schema_of
from odf_spark.engine import SparkEngine
from support.transforms import ORDERS, orders_input, transform_request

GOAL = 1.3
ROWS = 10_000_000
ROUNDS = 2
GROUP_ROWS = 131_072  # as slices of ours have
QUERY = "SELECT event_time, id, upper(status) AS status, amount * 2 AS twice FROM orders WHERE amount > 10"

STOCK = """
import json, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
started = time.perf_counter()
spark.read.parquet(sys.argv[1]).createOrReplaceTempView("orders")
spark.sql(sys.argv[3]).write.parquet(sys.argv[2])
print(json.dumps(time.perf_counter() - started))
spark.stop()
"""


def write_input(path: Path, rows: int) -> Path:
    """Write a slice in the order of offsets, all of it appended."""
    schema = arrow_schema_of(ORDERS)
    random = np.random.default_rng(1)
    instant = pa.timestamp("ms", "UTC")
    words = pa.array(["open", "paid", "sent", "back", "lost"])
    with pq.ParquetWriter(path, schema, version="2.6") as writer:
        for start in range(0, rows, GROUP_ROWS):
            count = min(GROUP_ROWS, rows - start)
            numbers = np.arange(start, start + count, dtype=np.int64)
            columns = [
                pa.array(numbers),
                pa.array(np.zeros(count, dtype=np.int32)),
                pa.array(np.zeros(count, dtype=np.int64)).cast(instant),
                pa.array(numbers * 1000).cast(instant),
                pa.array(random.permutation(numbers)),
                words.take(pa.array(random.integers(0, 5, count))),
                pa.array(random.random(count) * 100),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return path


def ended_cpu_s() -> float:
    """Processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stock(source: Path, folder: Path, query: str = QUERY) -> tuple[float, float]:
    """Run plain Spark; return seconds of the whole process and of the query."""
    started = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", STOCK, str(source), str(folder / "stock"), query],
        check=True, capture_output=True, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    whole_s = time.perf_counter() - started
    shutil.rmtree(folder / "stock")
    return whole_s, float(json.loads(ran.stdout.splitlines()[-1]))


def ours(engine: SparkEngine, source: Path, folder: Path, rows: int) -> tuple[float, float, float]:
    """Run our engine, then hash; return seconds of everything, of the transform and of the hash."""
    with tempfile.TemporaryDirectory(dir=folder) as workspace:
        begun = time.perf_counter()
        with engine.open(Path(workspace), Limits()) as session:
            session.start()
            started = time.perf_counter()
            response = session.transform(transform_request(QUERY, orders_input([source], (0, rows - 1))))
            transform_s = time.perf_counter() - started
            assert response.data_path is not None
            assert response.logical_hash is not None
            started = time.perf_counter()
            physical_hash_of(response.data_path)
            hash_s = time.perf_counter() - started
        return time.perf_counter() - begun, transform_s, hash_s


def main() -> None:
    """Print both and their ratios."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    engine = SparkEngine()
    engine.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_input(folder / "0.parquet", rows)
        stocks, mine, cpus = [], [], []
        for _ in range(ROUNDS):
            before_s = ended_cpu_s()
            stocks.append(stock(source, folder))
            between_s = ended_cpu_s()
            mine.append(ours(engine, source, folder, rows))
            cpus.append((between_s - before_s, ended_cpu_s() - between_s))
    stock_whole_s, stock_query_s = (min(column) for column in zip(*stocks, strict=True))
    whole_s, transform_s, hash_s = (min(column) for column in zip(*mine, strict=True))
    print(f"{rows:,} rows, best of {ROUNDS}, in seconds")
    print(f"plain Spark: query {stock_query_s:.2f}, start to end {stock_whole_s:.2f}")
    print(f"ours: transform {transform_s:.2f}, hashes {hash_s:.2f}, start to end {whole_s:.2f}")
    stock_cpu_s, cpu_s = (min(column) for column in zip(*cpus, strict=True))
    print(f"transform and hashes / query: {(transform_s + hash_s) / stock_query_s:.2f} (goal {GOAL})")
    print(f"start to end:                 {whole_s / stock_whole_s:.2f}")
    print(f"processor time, start to end: {cpu_s:.1f} / {stock_cpu_s:.1f} s, {cpu_s / stock_cpu_s:.2f}")


if __name__ == "__main__":
    main()
