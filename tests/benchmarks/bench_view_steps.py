"""Small steps of maintained views in an engine that runs: ``bench_view_steps.py [STEPS]``.

Each step brings some ten rows to each input, and is made over all that came before. Prints, for each query, seconds
and seconds of processor for the median step of the second half, when the virtual machine knows its work.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits
from odf_protocol.events import SqlQueryStep, TransformSql
from odf_spark.engine import SparkEngine
from property.test_slicing import QUERIES
from support.processor_time import spent_s
from support.view_histories import SCHEMAS, View, random_changelog

STEPS = 100
ROWS = 10


def main(steps: int) -> None:
    """Print seconds per step."""
    engine = SparkEngine()
    engine.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        with engine.open(folder / "work", Limits()) as session:
            for query in ("group", "ranking", "join"):
                tables = {table: SCHEMAS[table] for table in SCHEMAS if table in QUERIES[query]}
                logs = {table: random_changelog(Random(1), table, ROWS * steps) for table in tables}
                transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=QUERIES[query]),))
                (folder / query).mkdir()
                view = View.over(session, transform, folder / query, tables)
                walls, spent = [], []
                for step in range(steps):
                    gained = {table: [(log[step * ROWS : (step + 1) * ROWS], None)] for table, log in logs.items()}
                    started, before = time.perf_counter(), spent_s()
                    view.blocks(gained)
                    walls.append(time.perf_counter() - started)
                    spent.append(spent_s() - before)
                half = steps // 2
                wall, cpu = (statistics.median(each[half:]) for each in (walls, spent))
                print(f"{query:10} {wall:6.3f} s, {cpu:6.3f} s of processor a step; the first {walls[0]:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
