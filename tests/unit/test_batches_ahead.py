"""Batches that are made while those before are looked at."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from odf_engines.reading.batches_ahead import iter_ahead


def batch(number: int, rows: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([number] * rows, pa.int64())})


def test_batches_come_in_order_and_all() -> None:
    taken = [each.column(0)[0].as_py() for each in iter_ahead(batch(number) for number in range(100))]
    assert taken == list(range(100))


def test_small_batch_is_made_while_the_one_before_is_looked_at() -> None:
    second_is_made = threading.Event()

    def make() -> Iterator[pa.RecordBatch]:
        yield batch(0)
        second_is_made.set()
        yield batch(1)

    batches = iter_ahead(make())
    next(batches)
    assert second_is_made.wait(240)
    assert len(list(batches)) == 1


def test_large_batches_are_made_one_by_one() -> None:
    made: list[int] = []

    def make() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            made.append(number)
            yield batch(number)

    for count, _ in enumerate(iter_ahead(make(), ahead_bytes=batch(0).nbytes - 1), 1):
        assert len(made) == count


def test_waiting_batches_stay_below_the_limit() -> None:
    made: list[int] = []

    def make() -> Iterator[pa.RecordBatch]:
        for number in range(50):
            made.append(number)
            yield batch(number)

    for count, _ in enumerate(iter_ahead(make(), ahead_bytes=3 * batch(0).nbytes), 1):
        assert len(made) <= count + 3


def test_error_comes_after_the_batches_before_it() -> None:
    def make() -> Iterator[pa.RecordBatch]:
        yield batch(0)
        yield batch(1)
        raise MemoryError("too much")

    batches = iter_ahead(make())
    assert [next(batches).num_rows, next(batches).num_rows] == [10, 10]
    with pytest.raises(MemoryError, match="too much"):
        next(batches)


def test_reader_that_gives_up_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    batches = iter_ahead(batch(number) for number in range(1_000))
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    # Others of earlier tests may end meanwhile.
    assert set(threading.enumerate()) <= before
