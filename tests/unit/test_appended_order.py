"""Appended rows come by event time, or what stands for it, then as in the source, however many there are (ING-8)."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.arrow.sorting import DiskOrder
from odf_engines.ingest import merged
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.merged import iter_appended
from odf_engines.records.record_writer import RecordWriter
from odf_engines.records.source_records import RECORD, typed_schema
from odf_protocol.timestamp import Timestamp

FALLBACK = 25  # days or milliseconds
MEMORY_BYTES = 64 * 1024 * 1024  # a quarter of it is less than the rows take
TIMES = {"days": pa.date32(), "times": pa.timestamp("ms", "UTC")}


def columns_of(time):
    return Columns(pa.schema([("event_time", time), ("n", pa.int64()), ("text", pa.string())]), 0, None, (), True)


def records_of(path, time, numbers, texts=None, *, group_rows=10_000):
    count = len(numbers)
    times = pa.array(numbers, pa.int32() if time == pa.date32() else pa.int64()).cast(time)
    texts = texts or [f"text {n}" for n in range(count)]
    schema = typed_schema(columns_of(time).schema)
    arrays = [range(1, count + 1), [None] * count, times, list(range(count)), texts]
    rows = pa.table([pa.array(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema)
    pq.write_table(rows, path, row_group_size=group_rows, use_dictionary=False)
    return path


def appended(path, time, order=None):
    batches = iter_appended(path, columns_of(time), fallback_of(time), order)
    assert batches is not None
    return pa.Table.from_batches(
        [
            each.cast(pa.schema([("op", pa.int32()), ("v0", time), ("v1", pa.int64()), ("v2", pa.string())]))
            for each in batches
        ]
    )


def fallback_of(time):
    return Timestamp.from_unix_ms(FALLBACK * (86_400_000 if time == pa.date32() else 1))


def in_order(numbers):
    return sorted(range(len(numbers)), key=lambda n: (FALLBACK if numbers[n] is None else numbers[n], n))


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("max_bytes", [1 << 40, 0], ids=["in-memory", "in-parts"])
def test_rows_out_of_order_are_ordered_and_equal_ones_stay_as_they_were(tmp_path, monkeypatch, time, max_bytes):
    monkeypatch.setattr(merged, "_MAX_BYTES", max_bytes)
    choose = random.Random(1)
    numbers = [choose.choice([None, -1, *range(50)]) for _ in range(100_000)]
    path = records_of(tmp_path / "records", time, numbers)
    order = DiskOrder(tmp_path, MEMORY_BYTES).order_file
    rows = appended(path, time, order)
    expected = in_order(numbers)
    assert rows["v1"].to_pylist() == expected
    assert rows["v2"].to_pylist() == [f"text {n}" for n in expected]


@pytest.mark.parametrize(
    ("numbers", "is_ordered"),
    [
        ([], True),
        ([None, None], True),
        ([None, None, None, 25, 26, 26, 30], True),
        ([1, None, None, 25, 26, None], False),
        ([1, None], True),
        ([1, 2, None, 25, 30], True),
        ([1, 2, None, 3], False),
        ([1, 2, 3, 2], False),
        ([2, 1, 3, 4], False),
        ([None, 3, 2], False),
    ],
)
@pytest.mark.parametrize("group_rows", [1, 2, 100])
def test_rows_in_order_are_passed_on_and_others_are_not(tmp_path, monkeypatch, numbers, is_ordered, group_rows):
    monkeypatch.setattr(merged, "_MAX_BYTES", -1)
    path = records_of(tmp_path / "records", pa.date32(), numbers, group_rows=group_rows)
    asked = []

    def order(records, names, stand_ins):
        assert stand_ins == {"v0": pa.scalar(FALLBACK, pa.int32()).cast(pa.date32())}
        asked.append(names)
        return iter(())

    batches = iter_appended(path, columns_of(pa.date32()), fallback_of(pa.date32()), order)
    assert batches is not None
    given = [n for batch in batches for n in batch.column(2).to_pylist()]
    assert (asked, given) == (([], list(range(len(numbers)))) if is_ordered else ([("v0", RECORD)], []))


def test_rows_of_megabytes_among_short_ones_are_ordered_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(merged, "_MAX_BYTES", 0)
    numbers = [n * 7 % 100 for n in range(100)]
    texts = ["x" * (2_000_000 if n % 3 == 0 else 1) for n in range(100)]
    path = records_of(tmp_path / "records", pa.date32(), numbers, texts, group_rows=10)
    rows = appended(path, pa.date32(), DiskOrder(tmp_path, 4 * MEMORY_BYTES).order_file)
    assert rows["v1"].to_pylist() == in_order(numbers)
    assert [len(each) for each in rows["v2"].to_pylist()] == [len(texts[n]) for n in in_order(numbers)]


def test_rows_that_not_even_parts_hold_are_a_lack_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(merged, "_MAX_BYTES", 0)
    path = records_of(tmp_path / "records", pa.date32(), [3, 2, 1], ["x" * 2_000_000] * 3)
    with pytest.raises(MemoryError):
        appended(path, pa.date32(), DiskOrder(tmp_path, 1024).order_file)


def test_records_converted_side_by_side_stay_in_their_order(tmp_path):
    target = columns_of(pa.date32()).schema
    writer = RecordWriter(tmp_path / "records", ("event_time", "n", "text"), target)
    for start in range(0, 20_000, 1000):
        numbers = range(start, start + 1000)
        days = pa.array(["2020-01-01"] * 1000)
        texts = pa.array([f"{n}" if n % 100 else "none" for n in numbers])
        writer.write_arrays(pa.array(numbers, pa.int64()), [days, texts, texts])
    writer.close()
    found = writer.result(20_000, {}, lambda _: iter(()), lambda _: ())
    assert pq.read_table(found.path)[RECORD].to_pylist() == [n for n in range(20_000) if n % 100]
    assert pq.read_table(found.unconverted)[RECORD].to_pylist() == list(range(0, 20_000, 100))
