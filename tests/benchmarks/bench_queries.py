"""Queries by people over a changelog of many rows, in DataFusion's sandbox: its current rows, cut, counted, ordered.

One row in a thousand was corrected, so none of the ways is one of appends alone. Seconds are those that whoever asks
waits, in an engine that runs.

Run: python tests/benchmarks/bench_queries.py [ROWS]    (4,000,000)
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import Limits, QueryRequest, QueryTable
from odf_engines.registry import get_engine
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

ROWS = 4_000_000
REPEATS = 3
QUERIES = {
    "first engine": "SELECT 1 AS one",
    "LIMIT of current rows": "SELECT * FROM big__state LIMIT 3",
    "count of current rows": "SELECT count(*) AS n FROM big__state",
    "GROUP BY of current rows": "SELECT name, avg(share) AS mean FROM big__state GROUP BY name ORDER BY name LIMIT 3",
    "ORDER BY of all rows": "SELECT * FROM big ORDER BY share",
}


def main() -> None:
    """Print the least seconds of each."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = make_table(folder / "big.parquet", count)
        engine = get_engine("datafusion")
        engine.prepare()
        with engine.open(folder, Limits()) as session:
            for what, sql in QUERIES.items():
                taken = []
                for _ in range(REPEATS):
                    started = time.perf_counter()
                    rows = session.query(QueryRequest(tables=(table,), sql=sql)).rows
                    taken.append(time.perf_counter() - started)
                print(f"{what:26} {rows:>12,} rows {min(taken):8.3f} s")


def make_table(path: Path, count: int) -> QueryTable:
    """Write appended rows, of which every thousandth is corrected behind them."""
    numbers = np.arange(count)
    corrected = np.repeat(numbers[::1000], 2)
    ids = np.concatenate([numbers, corrected])
    op = np.zeros(len(ids), np.int32)
    op[count::2], op[count + 1 :: 2] = 2, 3
    share = (ids * 7919 % 1_000_003) / 1_000_003 + (op == 3)
    rows = pa.table(
        {
            "offset": np.arange(len(ids)),
            "op": op,
            "system_time": pa.array(np.zeros(len(ids), np.int64), pa.timestamp("ms", "UTC")),
            "event_time": pa.array(ids * 1000, pa.timestamp("ms", "UTC")),
            "id": ids,
            "name": pa.array([f"name {number % 5000}" for number in ids]),
            "share": share,
        }
    )
    pq.write_table(rows, path, row_group_size=100_000)
    return QueryTable(name="big", vocabulary=Vocabulary(), schema=data_schema_of(rows.schema), slices=(path,))


if __name__ == "__main__":
    main()
