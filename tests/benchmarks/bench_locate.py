"""What it takes to locate one differing cell in a slice of many: bytes on the wire and time of both sides.

``python tests/benchmarks/bench_locate.py --rows 10000000 --columns 10``
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_engines.reading.slices import summarise
from odf_locate.tree_queries import locate_difference
from odf_protocol.multihash import Multihash
from support.exchange_nodes import Chain, TestNode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=10)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    columns = {f"c{n}": rng.integers(0, 1000, arguments.rows, np.int32) for n in range(arguments.columns)}
    with tempfile.TemporaryDirectory() as folder:
        theirs, mine = Path(folder) / "theirs.parquet", Path(folder) / "mine.parquet"
        pq.write_table(pa.table(columns), theirs)
        columns[f"c{arguments.columns // 2}"][arguments.rows // 3] += 1
        pq.write_table(pa.table(columns), mine)
        node = TestNode.create(Path(folder) / "home")
        content = theirs.read_bytes()
        node.keep(Chain().add(content))
        started = time.process_time()
        summary = summarise(mine)
        print(f"hashing {arguments.rows * arguments.columns:,} cells: {time.process_time() - started:.2f} s of CPU")

        async def ask() -> None:
            async with node.serving() as address:
                for _ in range(2):  # the server's tree is computed for the first
                    began = time.perf_counter()
                    found = await locate_difference(f"{address}/demo.data", Multihash.of_sha3_256(content), summary)
                    print(
                        f"{len(found.differences)} leaf, {found.requests} requests, {found.answer_bytes:,} bytes of "
                        f"answers, {time.perf_counter() - began:.3f} s"
                    )

        asyncio.run(ask())


if __name__ == "__main__":
    main()
