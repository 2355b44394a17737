"""How long until the first and the next result: our sandboxed engine against Spark as its documentation starts it.

Both do the same in the same run: start, read a slice of 100,000 rows, project and filter it, write Parquet, end. Each
is measured several times, in turn, and the best figure counts, since other work on the machine only ever adds.

Run: python tests/benchmarks/bench_transform_start.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits
from odf_spark.engine import SparkEngine
from support.transforms import orders_input, transform_request, write_orders

GOAL = 0.4
ROWS = 100_000
ROUNDS = 2
WARM_REQUESTS = 10
QUERY = "SELECT event_time, id, upper(status) AS status, amount * 2 AS twice FROM orders WHERE amount > 10"

STOCK = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
spark.read.parquet(sys.argv[1]).createOrReplaceTempView("orders")
spark.sql(sys.argv[3]).write.parquet(sys.argv[2])
spark.stop()
"""


def stock(source: Path, folder: Path) -> float:
    """Start Spark the usual way, in a process of its own; return seconds from start to end."""
    started = time.perf_counter()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    subprocess.run(
        [sys.executable, "-c", STOCK, str(source), str(folder / "stock"), QUERY],
        check=True, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    taken_s = time.perf_counter() - started
    shutil.rmtree(folder / "stock")
    return taken_s


def ours(engine: SparkEngine, source: Path, folder: Path) -> tuple[float, list[float]]:
    """Run one transform from nothing, then warm ones; return seconds to its end, and of each warm request."""
    warm_s = []
    with tempfile.TemporaryDirectory(dir=folder) as workspace:
        started = time.perf_counter()
        with engine.open(Path(workspace), Limits()) as session:
            request = transform_request(QUERY, orders_input([source], (0, ROWS - 1)))
            session.transform(request)
            cold_s = time.perf_counter() - started
            for _ in range(WARM_REQUESTS):
                started = time.perf_counter()
                session.transform(request)
                warm_s.append(time.perf_counter() - started)
            ending = time.perf_counter()
        cold_s += time.perf_counter() - ending
    return cold_s, warm_s


def main() -> None:
    """Print both and their ratio."""
    engine = SparkEngine()
    engine.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [(number, 0, number, number, "abc"[number % 3], float(number % 100)) for number in range(ROWS)]
        source = write_orders(folder / "0.parquet", rows)
        stocks, colds, warms = [], [], []
        for _ in range(ROUNDS):
            stocks.append(stock(source, folder))
            cold_s, warm_s = ours(engine, source, folder)
            colds.append(cold_s)
            warms += warm_s
    print(f"stock pyspark, start to end:      {min(stocks):6.2f} s  (all: {', '.join(f'{s:.2f}' for s in stocks)})")
    print(f"ours in its sandbox, start to end:{min(colds):6.2f} s  (all: {', '.join(f'{s:.2f}' for s in colds)})")
    print(f"ours / stock:                     {min(colds) / min(stocks):6.2f} (goal {GOAL})")
    print(f"ours warm, median and best:       {sorted(warms)[len(warms) // 2]:6.3f} s, {min(warms):.3f} s")


if __name__ == "__main__":
    main()
