from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from odf_protocol.hashing.arrow0 import Arrow0Hasher
from odf_protocol.hashing.column_work import run_columns
from support.logical_hash import hash_batches


def column(name: str, chunks: int, done: list[str]) -> Iterator[float]:
    for left in range(chunks, 0, -1):
        yield float(left)
        done.append(name)


def test_one_worker_turns_to_the_column_that_has_most_left() -> None:
    done: list[str] = []
    with ThreadPoolExecutor(1) as executor:
        run_columns([column("short", 1, done), column("long", 3, done), column("middle", 2, done)], executor)
    assert done == ["long", "long", "middle", "short", "long", "middle"]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_several_workers_do_every_chunk_of_each_column_in_its_order(threads: int) -> None:
    rng = np.random.default_rng(threads)
    counts = [int(count) for count in rng.integers(0, 400, 7)]
    done: list[list[int]] = [[] for _ in counts]

    def numbered(index: int) -> Iterator[float]:
        for position in range(counts[index]):
            yield float(counts[index] - position)
            done[index].append(position)

    with ThreadPoolExecutor(threads) as executor:
        run_columns([numbered(index) for index in range(len(counts))], executor)
    assert done == [list(range(count)) for count in counts]


def test_error_of_a_column_reaches_the_caller() -> None:
    def failing() -> Iterator[float]:
        yield 9.0
        raise ValueError("in the second column")

    done: list[str] = []
    with ThreadPoolExecutor(2) as executor, pytest.raises(ValueError, match="in the second column"):
        run_columns([column("a", 5, done), failing(), column("b", 5, done)], executor)
    assert sorted(done) == ["a"] * 5 + ["b"] * 5


def test_threads_give_the_hash_of_one_thread_with_any_batches_and_questions_in_between() -> None:
    rows = 300_000
    rng = np.random.default_rng(4)
    words = pa.array(["", "a", "of some length", None])
    inner = pa.StructArray.from_arrays(
        [words.take(pa.array(rng.integers(0, 4, rows)))], names=["w"], mask=pa.array(rng.random(rows) < 0.1)
    )
    table = pa.table(
        {
            "number": pa.array(rng.integers(0, 99, rows), mask=rng.random(rows) < 0.5),
            "text": words.take(pa.array(rng.integers(0, 4, rows))),
            "truth": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.3),
            "inner": inner,
        }
    )
    alone = hash_batches(table.schema, table.to_batches())
    with ThreadPoolExecutor(3) as executor:
        hasher = Arrow0Hasher(table.schema, executor=executor)
        asked = []
        for batch in table.to_batches(max_chunksize=70_001):
            hasher.update(batch)
            asked.append(hasher.digest())
        assert hasher.digest() == alone
        assert hash_batches(table.schema, table.to_batches(max_chunksize=999), executor=executor) == alone
    assert asked[0] == hash_batches(table.schema, table.slice(0, 70_001).to_batches())


def test_hasher_with_threads_holds_at_most_what_is_hashed_at_once() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    with ThreadPoolExecutor(2) as executor:
        hasher = Arrow0Hasher(schema, executor=executor)
        before = pa.total_allocated_bytes()
        held = []
        for start in range(0, 8_000_000, 100_000):
            numbers = pa.array(np.arange(start, start + 100_000)).take(pa.array(np.arange(100_000)))  # Arrow's memory
            hasher.update(pa.record_batch([numbers, numbers], schema))
            del numbers
            held.append(pa.total_allocated_bytes() - before)
    assert max(held) < 16 << 20  # 8 MiB, a batch, and what is laid out of it
    assert len(held) == 80
