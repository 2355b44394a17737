from dataclasses import replace
from pathlib import Path

import pytest

from odf_node.services.slices import check_slice, describe_new_slice, physical_hash_of
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


def test_rows_of_another_millisecond_than_the_block_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "slice"
    path.write_bytes(parquet_bytes(slice_table(CITIES, first_offset=0, at=replace(NOON, nanoseconds=6_000_000))))
    with pytest.raises(RejectedError, match="ROWS-3"):
        check(path, replace(NOON, nanoseconds=5_999_999))
