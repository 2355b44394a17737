"""What it costs that engines read only rows which this node wrote itself.

A root of another node is taken, with all its checks; then a question is asked and a derivative computed, first where
the rows have to be written anew, then where they are. What is stated are ratios of one run: of the first to the second,
and of the disk that a home takes with these rows to what it takes without.

Run: python tests/benchmarks/bench_rows.py [MEGABYTES]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["ODF_NODE_SIGNED_MARKS"] = ""  # keys of tests sign more than one history
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pyarrow as pa

from odf_node.datasets.queries import QueryRunner
from odf_protocol.events import DatasetKind, Seed
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_spark.engine import SparkEngine
from support.homes import make_home
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, select
from support.signing import NEW_KEY

MEGABYTES = 64
ROW_BYTES = 27  # of these rows in a file
SLICES = 4
QUERY_TEXT = "SELECT count(*), max(people) FROM cities"
QUERY = "SELECT event_time, upper(city) AS city, people * 2 AS twice FROM in0 WHERE people % 2 = 0"


def rows(first: int, count: int, at: Timestamp) -> bytes:
    """A slice as other writers store it."""
    random = np.random.default_rng(first)
    schema = arrow_schema_of(CITY_SCHEMA)
    times = pa.array(np.full(count, at.unix_ms))
    people = random.integers(0, 2**62, count)
    columns = [
        pa.array(np.arange(first, first + count)), pa.array(np.zeros(count, np.int32)), times.cast(schema.types[2]),
        pa.array(NOON.unix_ms + random.integers(0, 10**9, count)).cast(schema.types[3]),
        pa.array(np.char.add("city ", (people % 100_000).astype(str))), pa.array(people),
    ]  # fmt: skip
    return parquet_bytes(pa.table(columns, schema=schema), compression="zstd")


def timed(name: str, action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    taken_s = time.perf_counter() - started
    print(f"{name:<52} {taken_s:7.2f} s")
    return taken_s


def main() -> None:
    """Measure."""
    count = (int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES) * 1_000_000 // ROW_BYTES // SLICES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chain = root_chain(folder, slices=0)
        for number in range(SLICES):
            content = rows(number * count, count, Timestamp(NOON.seconds + 2 + number))
            chain.add_slice(content, rows=count)
        engine = SparkEngine()
        (folder / "work").mkdir()
        from odf_engines.contract import Limits

        with engine.open(folder / "work", Limits()) as session:
            session.start()
            judge = Judge.create(folder / "home", session)
            size_bytes = sum(map(len, chain.files.values()))
            print(f"{count * SLICES:,} rows, {size_bytes / 1e6:.0f} MB in {SLICES} slices")
            timed("verified pull, every row checked", lambda: judge.accept(chain))

            def ask() -> None:
                with judge.opened() as store:
                    runner = QueryRunner(make_home(judge.home, store), judge.engines)
                    runner.run(QUERY_TEXT, as_of=None, max_rows=None)

            def derive() -> None:
                publisher = PublisherHome(judge)
                derivative = PeerChain(folder, key=NEW_KEY, name=f"derived{time.monotonic_ns()}")
                derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
                publisher.keep(derivative.add(select(QUERY, chain.id)))
                publisher.run(derivative, at=Timestamp(NOON.seconds + 100))
                with judge.opened() as store:
                    store.delete_dataset(derivative.id)

            ask()
            judge.engines.rows.clear()
            first = timed("question, rows written anew", ask)
            later = timed("question, rows there", ask)
            room = judge.engines.rows.measure().size_bytes
            derive()
            judge.engines.rows.clear()
            first_step = timed("step, rows written anew", derive)
            later_step = timed("step, rows there", derive)
        print(f"question: {first / later:.2f} times as long the first time; step: {first_step / later_step:.2f} times")
        print(f"disk: {(size_bytes + room) / size_bytes:.2f} times the slices")


if __name__ == "__main__":
    main()
