"""One small step on each engine: the first in a process of its own, and those after it.

The query is a map, which both engines run as a transform; the seconds are those that whoever asks waits.

Run: python tests/benchmarks/bench_datafusion.py [ROWS]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits, QueryRequest, QueryTable
from odf_engines.registry import get_engine
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, transform_request, write_orders

ROWS = 100
WARM = 20
QUERY = "SELECT op, event_time, upper(status) AS status, amount * 2 AS twice FROM orders WHERE id % 10 <> 0"
QUESTION = "SELECT status, count(*) AS n FROM orders GROUP BY status"


def main() -> None:
    """Print the seconds of each."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_orders(folder / "orders.parquet", [(at, 0, at, at, "new", 1.5) for at in range(rows)])
        request = transform_request(QUERY, orders_input([path], (0, rows - 1)))
        table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS, slices=(path,))
        question = QueryRequest(tables=(table,), sql=QUESTION)
        for engine in ("datafusion", "spark"):
            get_engine(engine).prepare()
            with get_engine(engine).open(folder, Limits()) as session:
                seconds = {"start": [taken(session.start)], "first step": [taken(lambda: session.transform(request))]}
                seconds["warm step"] = [taken(lambda: session.transform(request)) for _ in range(WARM)]
                seconds["first question"] = [taken(lambda: session.query(question))]
                seconds["warm question"] = [taken(lambda: session.query(question)) for _ in range(WARM)]
            told = ", ".join(f"{what} {statistics.median(found):.3f} s" for what, found in seconds.items())
            print(f"{engine:10} {rows} rows: {told}")


def taken(work: object) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
