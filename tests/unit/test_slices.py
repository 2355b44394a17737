from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.reading.slices import check_slice, read_last_rows, rows_at_once
from odf_node.rows.file_hashes import describe_new_slice, physical_hash_of
from odf_protocol.errors import RejectedError
from odf_protocol.events import OffsetInterval
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.offers import CITIES, CITY_SCHEMA, NOON, parquet_bytes, slice_table

ROWS = OffsetInterval(start=0, end=len(CITIES) - 1)


def check(path: Path, block_time: Timestamp) -> None:
    claimed = describe_new_slice(path, ROWS, physical_hash_of(path), path.stat().st_size)
    check_slice(
        path,
        claimed,
        schema=CITY_SCHEMA,
        vocabulary=Vocabulary(),
        system_time=block_time,
        sequence_number=2,
    )


@pytest.mark.parametrize("nanoseconds", [5_000_000, 5_000_001, 5_999_999])
def test_rows_carry_the_milliseconds_of_a_block_that_keeps_nanoseconds(tmp_path: Path, nanoseconds: int) -> None:
    path = tmp_path / "slice"
    path.write_bytes(parquet_bytes(slice_table(CITIES, first_offset=0, at=replace(NOON, nanoseconds=5_000_000))))
    check(path, replace(NOON, nanoseconds=nanoseconds))


def test_rows_of_another_millisecond_than_the_block_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "slice"
    path.write_bytes(parquet_bytes(slice_table(CITIES, first_offset=0, at=replace(NOON, nanoseconds=6_000_000))))
    with pytest.raises(RejectedError, match="ROWS-3"):
        check(path, replace(NOON, nanoseconds=5_999_999))


@pytest.mark.parametrize("count", [1, 2, 999, 1_000, 1_001, 150_000, 200_000, 300_000])
def test_last_rows_are_those_of_the_whole(tmp_path: Path, count: int) -> None:
    path = tmp_path / "slice"
    numbers = pa.table({"n": pa.array(range(200_000)), "t": pa.array(["x", None] * 100_000)})
    pq.write_table(numbers, path, row_group_size=131_072)
    assert read_last_rows(path, count).equals(numbers.slice(max(0, 200_000 - count)))


def test_last_rows_cost_no_more_than_some_batches(tmp_path: Path) -> None:
    path = tmp_path / "slice"
    rows = 500_000
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * 1_000]))
    pq.write_table(pa.table({"t": text}), path, store_schema=False)
    before_bytes = pa.default_memory_pool().max_memory()

    assert read_last_rows(path, 3).column("t").to_pylist() == ["a" * 1_000] * 3

    assert path.stat().st_size < 4_000_000
    assert pa.default_memory_pool().max_memory() < before_bytes + 350_000_000  # of 500 MB


def test_slice_without_rows_has_no_last_rows(tmp_path: Path) -> None:
    path = tmp_path / "slice"
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), path)
    assert read_last_rows(path, 5).num_rows == 0


@pytest.mark.parametrize(("text_bytes", "rows"), [(1, 65_536), (200, 9_216), (5_000, 1_024)])
def test_the_longer_the_rows_the_fewer_are_read_at_once(text_bytes: int, rows: int) -> None:
    texts = [chr(33 + number % 90) * text_bytes + str(number) for number in range(10_000)]
    content = parquet_bytes(pa.table({"text": texts}), use_dictionary=False)
    assert rows_at_once(pq.read_metadata(pa.BufferReader(content))) == rows


def test_file_that_says_nothing_of_its_rows_is_read_as_usual() -> None:
    assert rows_at_once(pq.read_metadata(pa.BufferReader(parquet_bytes(pa.table({"a": pa.array([], "i8")}))))) == 65_536
