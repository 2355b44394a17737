"""A step of a large maintained view that changes a hundredth of its groups, against plain Spark computing all of them.

The view has a tenth as many groups as its input has rows. Plain Spark reads the same files, groups them and writes
Parquet. Both have run the query once before, in the process that is timed; the best of several rounds counts.

Run: python tests/benchmarks/bench_large_views.py [MILLIONS OF ROWS]
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

from odf_engines.contract import Limits, TransformInput, TransformRequest
from odf_protocol.events import OffsetInterval
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.vocabulary import Vocabulary
from odf_spark.engine import SparkEngine
from support.transforms import SYSTEM_TIME, transform_sql
from support.view_histories import SCHEMAS

GOAL = 0.4
MILLION = 1_000_000
ROUNDS = 3
ROWS_OF_A_GROUP = 10
GROUPS_OF_A_CHANGE = 100
QUERY = "SELECT max(event_time) AS event_time, k, count(*) AS n, sum(a) AS total FROM orders GROUP BY k"

STOCK = """
import json, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
spark.read.parquet(*json.loads(sys.argv[1])).createOrReplaceTempView("orders")
for number in range(int(sys.argv[4])):
    started = time.perf_counter()
    spark.sql(sys.argv[3]).write.parquet(f"{sys.argv[2]}/{number}")
    print(json.dumps(time.perf_counter() - started), flush=True)
spark.stop()
"""


def write_slice(path: Path, first: int, keys: np.ndarray) -> Path:
    """Write rows that append one of each of these keys."""
    schema = arrow_schema_of(SCHEMAS["orders"])
    count, instant = len(keys), schema.field(2).type
    columns = [
        pa.array(np.arange(first, first + count)),
        pa.array(np.zeros(count, np.int32)),
        pa.array(np.zeros(count, np.int64)).cast(instant),
        pa.array(np.arange(first, first + count) * 1000).cast(instant),
        pa.array(keys),
        pa.array(["open", "paid"]).take(pa.array(keys % 2)),
        pa.array(keys % 97),
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, row_group_size=131_072)
    return path


def step(slices: list[Path], ends: list[int]) -> TransformRequest:
    """The step that brings the last slice."""
    source = TransformInput(
        alias="orders",
        dataset_id="did:odf:orders",
        vocabulary=Vocabulary(),
        schema=SCHEMAS["orders"],
        earlier_slices=tuple(slices[:-1]),
        slices=(slices[-1],),
        offset_interval=OffsetInterval(start=ends[-2] + 1, end=ends[-1]),
        prev_offset=ends[-2],
    )
    return TransformRequest(
        dataset_id="did:odf:view",
        transform=transform_sql(QUERY),
        vocabulary=Vocabulary(),
        inputs=(source,),
        system_time=SYSTEM_TIME,
        next_offset=ends[-2] + 1,
    )


def main(millions: int) -> None:
    """Print both, and their ratio."""
    engine, random = SparkEngine(), np.random.default_rng(1)
    engine.prepare()
    groups = millions * MILLION // ROWS_OF_A_GROUP
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slices, ends = [], [-1]
        for number in range(millions + 1):
            count = MILLION if number < millions else groups // GROUPS_OF_A_CHANGE
            slices.append(write_slice(folder / f"{number}.parquet", ends[-1] + 1, random.integers(0, groups, count)))
            ends.append(ends[-1] + count)
        given = [json.dumps([str(each) for each in slices]), str(folder / "stock"), QUERY, str(ROUNDS)]
        ran = subprocess.run(
            [sys.executable, "-c", STOCK, *given],
            check=True, capture_output=True, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
        stock_s = min(map(float, ran.stdout.splitlines()))
        (folder / "work").mkdir()
        with engine.open(folder / "work", Limits()) as session:
            times = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                response = session.transform(step(slices, ends))
                times.append(time.perf_counter() - started)
            assert response.data_path is not None
            rows = pq.read_metadata(response.data_path).num_rows
    print(f"{millions} million rows, {groups} groups: plain Spark computes them in {stock_s:.1f} s")
    print(f"a step that brings {ends[-1] - ends[-2]} rows, and gives {rows}: {min(times):.1f} s")
    print(f"ratio {min(times) / stock_s:.2f} (goal {GOAL})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
