"""One step over millions of rows, against the same query in plain Spark: a tumbling window, and a join by equality.

Ten million rows go through a window of an hour by key, and are joined with 100,000 others. Plain Spark reads the same
files, computes the query and writes Parquet. Both have run it once before, in the process that is timed; the best of
several rounds counts.

Run: python tests/benchmarks/bench_large_steps.py [MILLIONS OF ROWS]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits, TransformInput, TransformRequest, Watermark
from odf_protocol.events import OffsetInterval
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from odf_spark.engine import SparkEngine
from support.transforms import SYSTEM_TIME, transform_sql
from support.view_histories import SCHEMAS

GOAL = 1.5
MILLION = 1_000_000
ROUNDS = 3
PEOPLE = 100_000
QUERIES = {
    "window": "SELECT window.end AS event_time, s, count(*) AS n, sum(a) AS total FROM orders "
    "GROUP BY window(event_time, '1 hour'), s",
    "join": "SELECT o.event_time, o.k, o.a, p.r FROM orders o JOIN people p ON o.k = p.k",
}
FIRST_MS = 1_600_000_000_000

STOCK = """
import json, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
for name, paths in json.loads(sys.argv[1]).items():
    spark.read.parquet(*paths).createOrReplaceTempView(name)
for number in range(int(sys.argv[4])):
    started = time.perf_counter()
    spark.sql(sys.argv[3]).write.parquet(f"{sys.argv[2]}/{number}")
    print(json.dumps(time.perf_counter() - started), flush=True)
spark.stop()
"""


def write_slice(path: Path, name: str, first: int, values: list[pa.Array]) -> Path:
    """Write rows that are appended, a second apart."""
    schema = arrow_schema_of(SCHEMAS[name])
    count, instant = len(values[0]), schema.field(2).type
    columns = [
        pa.array(np.arange(first, first + count)),
        pa.array(np.zeros(count, np.int32)),
        pa.array(np.zeros(count, np.int64)).cast(instant),
        pa.array(FIRST_MS + np.arange(first, first + count) * 1000).cast(instant),
        *values,
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, row_group_size=131_072)
    return path


def source_of(name: str, slices: list[Path], rows: int) -> TransformInput:
    """An input that is read from its first row to its last, with a watermark behind it."""
    return TransformInput(
        alias=name,
        dataset_id=f"did:odf:{name}",
        vocabulary=Vocabulary(),
        schema=SCHEMAS[name],
        slices=tuple(slices),
        offset_interval=OffsetInterval(start=0, end=rows - 1),
        watermarks=(
            Watermark(
                system_time=SYSTEM_TIME, last_offset=rows - 1, event_time=Timestamp.from_unix_ms(FIRST_MS + rows * 1000)
            ),
        ),
    )


def measure(engine: SparkEngine, folder: Path, name: str, sources: dict[str, tuple[list[Path], int]]) -> None:
    """Print both, and their ratio."""
    query = QUERIES[name]
    used = {each: found for each, found in sources.items() if each in query}
    paths = json.dumps({each: [str(path) for path in slices] for each, (slices, _) in used.items()})
    ran = subprocess.run(
        [sys.executable, "-c", STOCK, paths, str(folder / f"stock-{name}"), query, str(ROUNDS)],
        check=True, capture_output=True, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    stock_s = min(map(float, ran.stdout.splitlines()))
    work = folder / f"work-{name}"
    work.mkdir()
    request = TransformRequest(
        dataset_id="did:odf:derived",
        transform=transform_sql(query),
        vocabulary=Vocabulary(),
        inputs=tuple(source_of(each, slices, rows) for each, (slices, rows) in used.items()),
        system_time=SYSTEM_TIME,
        next_offset=0,
    )
    with engine.open(work, Limits()) as session:
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            response = session.transform(request)
            times.append(time.perf_counter() - started)
        assert response.data_path is not None
        given = pq.read_metadata(response.data_path).num_rows
    print(f"{name}: plain Spark {stock_s:.1f} s; a step, which gives {given:,} rows, {min(times):.1f} s", end="")
    print(f": ratio {min(times) / stock_s:.2f} (goal {GOAL})", flush=True)


def main(millions: int) -> None:
    """Make the inputs, and measure each query."""
    engine, random = SparkEngine(), np.random.default_rng(1)
    engine.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder, texts, slices = Path(name), pa.array(["open", "paid"]), []
        for number in range(millions):
            keys = random.integers(0, PEOPLE, MILLION)
            values = [pa.array(keys), texts.take(pa.array(keys % 2)), pa.array(keys % 97)]
            slices.append(write_slice(folder / f"{number}.parquet", "orders", number * MILLION, values))
        keys = np.arange(PEOPLE)
        people = [pa.array(keys), pa.array(["north", "south"]).take(pa.array(keys % 2))]
        sources = {
            "orders": (slices, millions * MILLION),
            "people": ([write_slice(folder / "people.parquet", "people", 0, people)], PEOPLE),
        }
        for each in QUERIES:
            measure(engine, folder, each, sources)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
