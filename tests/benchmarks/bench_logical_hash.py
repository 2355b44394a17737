"""How fast rows are hashed, as ratios within one run: absolute figures differ from machine to machine.

Work of one thread is measured in processor seconds, what is compared by turns, and the best of each is taken: another
process can only make a run slower. Two threads need a quiet machine: "cores used" says whether there was one.

Run: ``python tests/benchmarks/bench_logical_hash.py [megabytes]``; with ``ODF_PEER`` set, the Rust program joins in.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_protocol.hashing.arrow0_rows import row_bytes
from support.logical_hash import hash_batches, hash_table

BATCH_ROWS = 100_000
ROUNDS = 7
MIN_S = 2.0


def best_s(*works: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> list[float]:
    """Do all works by turns; return the best seconds of each."""
    best = [float("inf")] * len(works)
    rounds, begun = 0, time.perf_counter()
    while rounds < ROUNDS or time.perf_counter() - begun < MIN_S:
        rounds += 1
        for index, work in enumerate(works):
            started = clock()
            work()
            best[index] = min(best[index], clock() - started)
    return best


def columns(rows: int) -> dict[str, pa.Array]:
    rng = np.random.default_rng(1)
    holes = rng.random(rows) < 0.2
    numbers = rng.integers(0, 1 << 60, rows)
    words = pa.array(["Oslo", "Rome", "", "Llanfairpwllgwyngyll", "A sentence of an everyday length, more or less."])
    text = words.take(pa.array(rng.integers(0, len(words), rows)))
    return {
        "int64": pa.array(numbers),
        "int64, 20 % nulls": pa.array(numbers, mask=holes),
        "int32, 20 % nulls": pa.array(numbers.astype(np.int32), mask=holes),
        "short strings": words.slice(0, 4).take(pa.array(rng.integers(0, 4, rows))),
        "strings": text,
        "strings, 20 % nulls": text.take(pa.array(np.arange(rows), mask=holes)),
        "boolean": pa.array(numbers % 2 == 0),
        "list of int32": pa.ListArray.from_arrays(
            pa.array(np.arange(rows + 1, dtype=np.int32) * 2), pa.array(np.arange(2 * rows, dtype=np.int32))
        ),
    }


def stream_bytes(table: pa.Table) -> bytes:
    """What arrow0 digests for the table's columns, laid out beforehand."""
    parts = []
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        parts += [bytes(row_bytes(column)) for column in batch.columns]
    return b"".join(parts)


def report(name: str, table: pa.Table) -> None:
    batches = table.to_batches(max_chunksize=BATCH_ROWS)
    stream = stream_bytes(table)
    plain_s, arrow0_s, v1_s = best_s(
        lambda: hashlib.sha3_256(stream).digest(),
        lambda: hash_batches(table.schema, batches),
        lambda: hash_table(table.schema, batches),
    )
    megabytes = len(stream) / 1e6
    print(
        f"{name:20}{megabytes:6.0f} MB   sha3 {megabytes / plain_s:5.0f} MB/s   "
        f"arrow0 {megabytes / arrow0_s:5.0f} MB/s = {100 * plain_s / arrow0_s:3.0f} % of sha3   "
        f"v1 {arrow0_s / v1_s:4.1f} x arrow0"
    )


def report_table(table: pa.Table) -> None:
    batches = table.to_batches(max_chunksize=BATCH_ROWS)
    stream = stream_bytes(table)
    plain_s, one_s, v1_s = best_s(
        lambda: hashlib.sha3_256(stream).digest(),
        lambda: hash_batches(table.schema, batches),
        lambda: hash_table(table.schema, batches),
    )
    print(
        f"{'whole table':20}{len(stream) / 1e6:6.0f} MB   sha3 {plain_s:.2f} s   arrow0 {one_s:.2f} s = "
        f"{100 * plain_s / one_s:3.0f} % of sha3   v1 {v1_s:.2f} s = {one_s / v1_s:.1f} x arrow0"
    )
    rust: list[float] = []
    cores: list[float] = []
    with ThreadPoolExecutor(2) as executor, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        peer = os.environ.get("ODF_PEER")

        def run_peer() -> None:
            if peer:
                run = subprocess.run([Path(peer, "arrow0"), path], check=True, capture_output=True)
                rust.append(json.loads(run.stdout)["hash_s"])

        def run_two() -> None:
            used, started = time.process_time(), time.perf_counter()
            hash_batches(table.schema, batches, executor=executor)
            cores.append((time.process_time() - used) / (time.perf_counter() - started))

        pq.write_table(table, path)
        _, one_s, two_s, v1_two_s = best_s(
            run_peer,
            lambda: hash_batches(table.schema, batches),
            run_two,
            lambda: hash_table(table.schema, batches, executor=executor),
            clock=time.perf_counter,
        )
    print(
        f"{'':20}on the wall: arrow0 {one_s:.2f} s, on two threads {two_s:.2f} s = {one_s / two_s:.2f} x "
        f"({max(cores):.2f} cores used); v1 on two threads {v1_two_s:.2f} s"
    )
    if rust:
        print(
            f"{'':20}Rust {min(rust):.2f} s: ours is {min(rust) / one_s:.2f} x as fast on one thread, "
            f"{min(rust) / two_s:.2f} x on two"
        )


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rows = megabytes * 1_000_000 // 20
    made = columns(rows)
    for name, column in made.items():
        report(name, pa.table({name: column}))
    report_table(pa.table(made))


if __name__ == "__main__":
    main()
