"""Parquet files made to harm their reader: each is rejected at bounded cost, and the node goes on."""

import io
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.reading.slices import hash_values_of, logical_hash_of
from odf_node.rows.slice_process import ReadingLimits, SliceProcess
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView, apply, start_view
from odf_protocol.errors import MalformedError, RejectedError, UnavailableError, UnsupportedError
from odf_protocol.events import (
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeInt64,
    DataTypeList,
    Seed,
    SetDataSchema,
)
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support import thrift_compact
from support.lying_parquet import GROUP_ROWS, ParquetFile, with_note
from support.offers import CITIES, CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, root_chain, slice_table

SLICE = 2
AT = Timestamp(NOON.seconds + SLICE)
SOME_HASH = Multihash(ARROW0_SHA3_256, bytes(32))
TIGHT = ReadingLimits(memory_bytes=400 * 1024**2, cpu_s=20, cpu_s_per_megabyte=0)
LISTS = DataSchema(
    fields=(*system_fields(Vocabulary()), DataField(name="items", type=DataTypeList(item_type=DataTypeInt64())))
)


@pytest.fixture(scope="module")
def reader() -> Iterator[SliceProcess]:
    """One process for the slices that it survives."""
    with SliceProcess(TIGHT) as process:
        yield process


def chain_with(folder: Path, content: bytes, rows: int, schema: DataSchema = CITY_SCHEMA) -> PeerChain:
    chain = PeerChain(folder)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=schema))
    return chain.add_slice(content, rows=rows, logical_hash=SOME_HASH)


def check(reader: SliceProcess, chain: PeerChain) -> None:
    path = chain.folder / "slice.parquet"
    path.write_bytes(next(iter(chain.files.values())))
    reader.check(path, *_last_block(chain))


def _last_block(chain: PeerChain) -> tuple[Block, DatasetView]:
    view = start_view(chain.blocks[0])
    for block in chain.blocks[1:]:
        view = apply(view, block)
    return chain.blocks[-1], view


def system_columns(rows: int) -> list[pa.Array]:
    schema = arrow_schema_of(CITY_SCHEMA)
    times = pa.array(np.full(rows, AT.unix_ms))
    return [
        pa.array(np.arange(rows)),
        pa.array(np.zeros(rows, np.int32)),
        times.cast(schema.field("system_time").type),
        times.cast(schema.field("event_time").type),
    ]


def dictionary_bomb(rows: int, text_bytes: int) -> bytes:
    """One long text in the dictionary, and that many rows that are it."""
    city = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * text_bytes]))
    schema = arrow_schema_of(CITY_SCHEMA).set(4, pa.field("city", city.type))
    table = pa.table([*system_columns(rows), city, pa.array(np.zeros(rows, np.int64))], schema=schema)
    return parquet_bytes(table, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30)


def list_bomb(items: int) -> bytes:
    """One row whose list has that many zeros."""
    schema = arrow_schema_of(LISTS)
    values = pa.array(np.zeros(items, np.int64))
    field_type = schema.field("items").type
    array = pa.ListArray.from_arrays(pa.array([0, items], pa.int32()), values, type=field_type)
    return parquet_bytes(pa.table([*system_columns(1), array], schema=schema), compression="zstd")


def with_row_count(content: bytes, honest: int, claimed: int) -> bytes:
    """Change the number of rows in the footer, and nowhere else."""
    wanted, lie = bytes([0x16, honest * 2]), bytes([0x16, claimed * 2])  # field 3, 64 bits, zigzag
    position = content.find(wanted)
    while position >= 0:
        changed = content[:position] + lie + content[position + 2 :]
        metadata = pq.ParquetFile(pa.BufferReader(changed)).metadata
        groups = sum(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))
        if (metadata.num_rows, groups) == (claimed, honest):
            return changed
        position = content.find(wanted, position + 1)
    raise AssertionError("the footer has no such number")


def test_dictionary_bomb_costs_bounded_memory(reader: SliceProcess, tmp_path: Path) -> None:
    content = dictionary_bomb(65_536, 100_000)
    assert len(content) < 300_000

    with pytest.raises(RejectedError, match="ROWS-6"):
        check(reader, chain_with(tmp_path, content, 65_536))


def test_list_bomb_costs_bounded_memory(reader: SliceProcess, tmp_path: Path) -> None:
    items = 60_000_000
    content = list_bomb(items)
    assert len(content) * 1_000 < items * 8

    with pytest.raises(RejectedError, match="ROWS-6"):
        check(reader, chain_with(tmp_path, content, 1, LISTS))


def test_reader_that_rejected_a_bomb_reads_the_next_slice(reader: SliceProcess, tmp_path: Path) -> None:
    honest = root_chain(tmp_path, slices=1)

    check(reader, honest)


def test_slice_that_takes_too_long_is_rejected(tmp_path: Path) -> None:
    rows = 8_000_000
    schema = arrow_schema_of(CITY_SCHEMA)
    columns = [*system_columns(rows), pa.nulls(rows, pa.string()), pa.array(np.zeros(rows, np.int64))]
    content = parquet_bytes(pa.table(columns, schema=schema))
    with SliceProcess(replace(TIGHT, cpu_s=0)) as slow, pytest.raises(RejectedError, match=r"ROWS-6.*cpu_s"):
        check(slow, chain_with(tmp_path, content, rows))


def test_reader_that_was_killed_from_outside_accuses_nobody(tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=1)
    with SliceProcess(TIGHT) as reader:
        check(reader, chain)
        process = reader._reader._process
        assert process is not None
        os.kill(process.process_id, signal.SIGKILL)
        os.waitid(os.P_PID, process.process_id, os.WEXITED | os.WNOWAIT)

        with pytest.raises(UnavailableError, match="SIGKILL"):
            check(reader, chain)
        check(reader, chain)  # by a new process


@pytest.mark.parametrize(("claimed", "interval_rows"), [(5, 5), (2, 2), (5, 3)])
def test_row_count_that_the_row_groups_do_not_hold_is_rejected(
    reader: SliceProcess, tmp_path: Path, claimed: int, interval_rows: int
) -> None:
    honest = parquet_bytes(slice_table(CITIES, first_offset=0, at=AT))
    lying = with_row_count(honest, len(CITIES), claimed)
    chain = chain_with(tmp_path, lying, interval_rows)
    path = tmp_path / "hashed.parquet"
    path.write_bytes(lying)
    # Whoever lies about the rows also names the hash that a reader finds.
    chain = chain.replacing(
        SLICE, lambda event: replace(event, new_data=replace(event.new_data, logical_hash=_any_hash(path)))
    )

    with pytest.raises((RejectedError, MalformedError), match=r"ROWS-2|Parquet"):
        check(reader, chain)


def _any_hash(path: Path) -> Multihash:
    try:
        return logical_hash_of(path)
    except (MalformedError, UnsupportedError):
        return SOME_HASH


def test_no_changed_byte_crashes_the_reader_or_changes_a_value_unseen(reader: SliceProcess, tmp_path: Path) -> None:
    honest = root_chain(tmp_path, slices=1)
    content = next(iter(honest.files.values()))
    block, view = _last_block(honest)
    path = tmp_path / "slice.parquet"
    refused = 0
    for position in range(0, len(content), 11):
        for flip in (0x01, 0x80):
            path.write_bytes(content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :])
            try:
                reader.check(path, block, view)
            except (RejectedError, MalformedError, UnsupportedError):
                refused += 1
            else:
                assert logical_hash_of(path) == block.event.new_data.logical_hash  # type: ignore[union-attr]
    assert refused > len(content) // 20


def test_cut_file_is_rejected_wherever_it_is_cut(reader: SliceProcess, tmp_path: Path) -> None:
    honest = root_chain(tmp_path, slices=1)
    content = next(iter(honest.files.values()))
    block, view = _last_block(honest)
    path = tmp_path / "slice.parquet"
    for size_bytes in range(0, len(content), 41):
        path.write_bytes(content[:size_bytes])
        with pytest.raises(MalformedError):
            reader.check(path, block, view)


def test_column_names_that_are_no_text_are_rejected(reader: SliceProcess, tmp_path: Path) -> None:
    content = parquet_bytes(slice_table(CITIES, first_offset=0, at=AT), store_schema=False)
    chain = chain_with(tmp_path, content.replace(b"people", b"peo\xffle"), 3)

    with pytest.raises((RejectedError, MalformedError)):
        check(reader, chain)


def test_bomb_is_rejected_by_the_gate_with_evidence_and_without_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odf_node.acceptance import checked_rows

    monkeypatch.setattr(checked_rows, "SliceProcess", lambda: SliceProcess(TIGHT))
    chain = chain_with(tmp_path, dictionary_bomb(65_536, 100_000), 65_536)
    started = time.monotonic()

    report = Judge.create(tmp_path / "judge").reject(chain.proposal(), chain.files, rule="ROWS-6")

    assert report["block"] == SLICE
    assert time.monotonic() - started < 240


# Comparing what was published with what was computed


def _written(folder: Path, name: str, cities: list[Any], **options: Any) -> Path:
    path = folder / name
    table = slice_table([(city, 1) for city in cities], first_offset=0, at=AT)
    path.write_bytes(parquet_bytes(table, **options))
    return path


def test_collision_of_the_logical_hash_is_seen_in_the_values(reader: SliceProcess, tmp_path: Path) -> None:
    one, other = _written(tmp_path, "one", ["", None]), _written(tmp_path, "other", [None, ""])
    assert logical_hash_of(one) == logical_hash_of(other)
    assert hash_values_of(one) != hash_values_of(other)

    found = reader.compare(one, other, Vocabulary(), sequence_number=7)

    assert found is not None
    assert (found.kind, found.columns, found.differing_rows) == ("cells", ("city",), 2)
    assert [(cell.offset, cell.published, cell.reexecuted) for cell in found.cells] == [(0, "", None), (1, None, "")]


def test_equal_values_in_another_file_are_no_difference(reader: SliceProcess, tmp_path: Path) -> None:
    one = _written(tmp_path, "one", ["a", "b", None])
    other = _written(tmp_path, "other", ["a", "b", None], compression="zstd", use_dictionary=False, row_group_size=2)

    assert one.read_bytes() != other.read_bytes()
    assert reader.compare(one, other, Vocabulary(), sequence_number=7) is None


def test_comparison_costs_bounded_memory(reader: SliceProcess, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    bomb.write_bytes(dictionary_bomb(65_536, 100_000))

    with pytest.raises(RejectedError, match="ROWS-6"):
        reader.compare(bomb, _written(tmp_path, "other", ["a"]), Vocabulary(), sequence_number=7)


def test_text_that_is_no_utf_8_is_rejected_rows_8(reader: SliceProcess, tmp_path: Path) -> None:
    table = slice_table(CITIES, first_offset=0, at=AT)
    raw = pa.array([b"Oslo", b"Ro\xffme", None], pa.binary())
    city = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2], raw.buffers()[0], 1)
    content = parquet_bytes(table.set_column(4, table.schema.field("city"), city))

    with pytest.raises(RejectedError, match=r"ROWS-8 values-are-of-their-type \('city'\).*UTF8"):
        check(reader, chain_with(tmp_path, content, 3))


def test_row_group_with_other_rows_than_it_says_is_rejected_rows_10(reader: SliceProcess, tmp_path: Path) -> None:
    table = slice_table(CITIES, first_offset=0, at=AT)
    file = ParquetFile.parse(parquet_bytes(table, row_group_size=2))
    for group, rows in zip(file.groups(), (3, 1), strict=True):
        group.put(GROUP_ROWS, thrift_compact.I64, rows)

    with pytest.raises(MalformedError, match="row group 0"):
        check(reader, chain_with(tmp_path, file.build(), 3))


def test_rows_are_written_anew_without_anything_of_the_file_rows_9(reader: SliceProcess, tmp_path: Path) -> None:
    table = slice_table(CITIES, first_offset=0, at=AT)
    content = with_note(parquet_bytes(table, compression="zstd"), b"org.apache.spark.version", b"2.4.8")
    path, made = tmp_path / "slice.parquet", tmp_path / "made.parquet"
    path.write_bytes(content)
    chain = chain_with(tmp_path, content, 3)
    data = replace(chain.blocks[-1].event.new_data, logical_hash=logical_hash_of(path))  # type: ignore[union-attr]
    chain = chain.replacing(len(chain.blocks) - 1, lambda event: replace(event, new_data=data))

    with made.open("wb") as target:
        reader.rewrite(path, *_last_block(chain), target)

    assert pq.read_table(made).equals(table)
    metadata = pq.read_metadata(made)
    assert set(metadata.metadata or {}) == {b"ARROW:schema"}
    assert metadata.row_group(0).column(4).compression == "SNAPPY"


def test_rows_of_a_slice_that_is_rejected_are_not_written_whole(reader: SliceProcess, tmp_path: Path) -> None:
    content = parquet_bytes(slice_table(CITIES, first_offset=0, at=AT))
    path = tmp_path / "slice.parquet"
    path.write_bytes(content)
    sink = io.BytesIO()

    with pytest.raises(RejectedError, match="ROWS-5"):
        reader.rewrite(path, *_last_block(chain_with(tmp_path, content, 3)), sink)

    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(pa.BufferReader(sink.getvalue()))


def test_rows_that_no_disk_holds_are_rejected_while_they_come(tmp_path: Path) -> None:
    content = parquet_bytes(slice_table(CITIES, first_offset=0, at=AT))
    path = tmp_path / "slice.parquet"
    path.write_bytes(content)
    data_hash = logical_hash_of(path)
    chain = chain_with(tmp_path, content, 3)
    chain = chain.replacing(
        len(chain.blocks) - 1,
        lambda event: replace(event, new_data=replace(event.new_data, logical_hash=data_hash)),
    )

    with SliceProcess(replace(TIGHT, written_bytes=100)) as tight, pytest.raises(RejectedError, match="ROWS-6"):
        tight.rewrite(path, *_last_block(chain), io.BytesIO())
