"""What one fixed order costs: our engine against Spark that may use every core and any order, on the same questions.

Both are warm and answer in turn; the best of several rounds counts, since other work on the machine only ever adds.
Ours includes the sandbox, the gate, the canonical order and the check of the answer.

Run: python tests/benchmarks/bench_fixed_order.py
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow.parquet as pq

from odf_engines.contract import Limits, QueryRequest, QueryTable
from odf_protocol.vocabulary import Vocabulary
from odf_spark.engine import SparkEngine, SparkHostSession
from support.transforms import ORDERS, write_orders

ROWS = 2_000_000
FILES = 4
ROUNDS = 3
QUERY_SERVICE = {
    "float sums by group": "SELECT id % 100 AS g, sum(amount) AS s, avg(amount) AS a FROM orders GROUP BY 1",
    "float sums, many groups": "SELECT max(s) AS m FROM (SELECT id, sum(amount) AS s FROM orders GROUP BY id)",
    "one deviation": "SELECT stddev(amount) AS d, corr(amount, id) AS c FROM orders",
    "decimal sums by group": "SELECT id % 100 AS g, sum(CAST(amount AS DECIMAL(18, 6))) AS s FROM orders GROUP BY 1",
    "join": "SELECT count(*) AS n, sum(a.amount * b.amount) AS s FROM orders a JOIN orders b ON a.id = b.id"
    " WHERE a.offset < 200000",
}

FREE = """
import json, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g").getOrCreate()
spark.read.parquet(*sys.argv[1:]).createOrReplaceTempView("orders")
print("ready", flush=True)
for line in sys.stdin:
    started = time.perf_counter()
    spark.sql(json.loads(line)).toArrow()
    print(time.perf_counter() - started, flush=True)
"""


def write_rows(folder: Path) -> tuple[Path, ...]:
    """Write the rows as slices."""
    chance = random.Random(1)
    rows = [(n, 0, n, chance.randrange(500_000), "new", chance.gauss(0, 1e6)) for n in range(ROWS)]
    whole = pq.read_table(write_orders(folder / "whole", rows))
    step = ROWS // FILES
    paths = [folder / f"{number}.parquet" for number in range(FILES)]
    for number, path in enumerate(paths):
        pq.write_table(whole.slice(number * step, step), path)
    (folder / "whole").unlink()
    return tuple(paths)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_rows(folder)
        free = subprocess.Popen(
            [sys.executable, "-c", FREE, *map(str, paths)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
        assert free.stdin is not None
        assert free.stdout is not None
        assert free.stdout.readline() == "ready\n"
        table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS, slices=paths)
        engine = SparkEngine(cores=2)
        with engine.open(folder, Limits()) as session:
            assert isinstance(session, SparkHostSession)
            session.compile_fully()
            for title, sql in QUERY_SERVICE.items():
                ours_s, free_s = [], []
                for _ in range(ROUNDS):
                    started = time.perf_counter()
                    session.query(QueryRequest(tables=(table,), sql=sql))
                    ours_s.append(time.perf_counter() - started)
                    free.stdin.write(json.dumps(sql) + "\n")
                    free.stdin.flush()
                    free_s.append(float(free.stdout.readline()))
                ratio = min(ours_s) / min(free_s)
                print(
                    f"{title:28} fixed order {min(ours_s):5.2f} s   any order {min(free_s):5.2f} s   ratio {ratio:4.2f}"
                )
        free.stdin.close()
        free.wait(timeout=60)


if __name__ == "__main__":
    main()
