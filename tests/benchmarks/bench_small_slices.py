"""What many small slices cost: a root of another node with 100 rows a slice, beside the same rows in one slice.

Pulled with every row checked, rows made for engines, the newest rows shown, a question asked twice, and one step of a
derivative over all. What is stated are seconds, and the times as long of one run.

Run: python tests/benchmarks/bench_small_slices.py [SLICES]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["ODF_NODE_SIGNED_MARKS"] = ""  # keys of tests sign more than one history
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench_rows import QUERY_TEXT, rows

from odf_engines.contract import Limits
from odf_engines.registry import get_engine
from odf_node.datasets.chains import iter_slices
from odf_node.datasets.queries import QueryRunner
from odf_node.datasets.reading import DataReader
from odf_protocol.timestamp import Timestamp
from support.homes import make_home
from support.offers import NOON, Judge, root_chain
from support.stores import find_named

SLICES = 1000
ROWS = 100


def measure(slices: int, count: int) -> dict[str, float]:
    """Take a chain, use it, and return the seconds of each."""
    taken: dict[str, float] = {}

    def timed(name: str, action: Callable[[], object]) -> None:
        started = time.perf_counter()
        action()
        taken[name] = time.perf_counter() - started

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chain = root_chain(folder, slices=0)
        for number in range(slices):
            at = Timestamp(NOON.seconds + 2 + number)
            chain.add_slice(rows(number * count, count, at), rows=count)
        (folder / "work").mkdir()
        with get_engine("datafusion").open(folder / "work", Limits()) as session:
            session.start()
            judge = Judge.create(folder / "home", session)
            timed("verified pull", lambda: judge.accept(chain))
            with judge.opened() as store:
                record = find_named(store, "cities")
                home = make_home(judge.home, store)
                reader, runner = DataReader(home), QueryRunner(home, judge.engines)
                timed("slices named", lambda: list(iter_slices(store, record.id)))
                timed("newest 10 rows", lambda: reader.tail(record, count=10))

                def ask() -> object:
                    return runner.run(QUERY_TEXT, as_of=None, max_rows=None)

                timed("question, rows written anew", ask)
                timed("question, rows there", ask)
        taken["MB of slices"] = sum(map(len, chain.files.values())) / 1e6
        taken["MB of rows for engines"] = judge.engines.rows.measure().size_bytes / 1e6
    return taken


def main() -> None:
    """Print both, and how many times the one the other is."""
    slices = int(sys.argv[1]) if len(sys.argv) > 1 else SLICES
    one, many = measure(1, slices * ROWS), measure(slices, ROWS)
    print(f"{slices * ROWS:,} rows: one slice, {slices:,} slices, times as much")
    for name, seconds in many.items():
        print(f"{name:<32} {one[name]:9.3f} {seconds:9.3f} {seconds / one[name]:8.1f}")


if __name__ == "__main__":
    main()
