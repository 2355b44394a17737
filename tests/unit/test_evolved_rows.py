"""Rows of an earlier schema in the columns of a later one (SCHEMA-5)."""

import io
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_engines.reading.evolved_rows import in_columns, write_in_columns
from odf_protocol.schema_arrow import data_schema_of

LEAVES = st.sampled_from([pa.int32(), pa.string(), pa.float64(), pa.timestamp("ms", "UTC"), pa.decimal128(10, 2)])
NAMES = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)


def kinds(depth: int) -> st.SearchStrategy[pa.DataType]:
    if not depth:
        return LEAVES
    inner = kinds(depth - 1)
    structs = NAMES.flatmap(lambda names: st.tuples(*(inner for _ in names)).map(lambda found: pa.struct(
        [pa.field(name, kind) for name, kind in zip(names, found, strict=True)]
    )))  # fmt: skip
    return st.one_of(LEAVES, structs, inner.map(lambda kind: pa.list_(pa.field("item", kind))))


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[pa.Schema, pa.Schema]:
    names = draw(NAMES)
    before = [pa.field(name, draw(kinds(2))) for name in names]
    after = [field.with_type(draw(grown(field.type))) for field in before]
    new = [name for name in draw(NAMES) if name not in names]
    after += [pa.field(name, draw(kinds(2))) for name in new]
    return pa.schema(before), pa.schema(draw(st.permutations(after)))


@st.composite
def grown(draw: st.DrawFn, kind: pa.DataType) -> pa.DataType:
    """A type with more optional fields in its structs, in another order."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(draw(grown(kind.value_type))))
    if not pa.types.is_struct(kind):
        return kind
    fields = [kind.field(number) for number in range(kind.num_fields)]
    held = {field.name for field in fields}
    more = [pa.field(name, draw(kinds(1))) for name in draw(NAMES) if name not in held]
    return pa.struct(draw(st.permutations([each.with_type(draw(grown(each.type))) for each in fields] + more)))


def values(draw: st.DrawFn, kind: pa.DataType) -> Any:
    if draw(st.integers(0, 4)) == 0:
        return None
    if pa.types.is_list(kind):
        return [values(draw, kind.value_type) for _ in range(draw(st.integers(0, 3)))]
    if pa.types.is_struct(kind):
        return {kind.field(n).name: values(draw, kind.field(n).type) for n in range(kind.num_fields)}
    number = draw(st.integers(0, 9))
    if pa.types.is_timestamp(kind):
        return datetime.fromtimestamp(number, UTC)
    if pa.types.is_decimal(kind):
        return Decimal(number).quantize(Decimal("0.01"))
    return str(number) if pa.types.is_string(kind) else number


def fitted(value: Any, kind: pa.DataType) -> Any:
    """The oracle: plain values, null where nothing was."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [fitted(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return {field.name: fitted(value.get(field.name), field.type) for field in fields}
    return value


@given(st.data())
@settings(max_examples=60)
def test_rows_keep_every_value_and_are_null_in_what_came_later(data: st.DataObject) -> None:
    before, after = data.draw(evolutions())
    draw = data.draw
    rows = [{field.name: values(draw, field.type) for field in before} for _ in range(draw(st.integers(0, 5)))]
    batch = pa.RecordBatch.from_pylist(rows, schema=before)
    start = draw(st.integers(0, len(rows)))
    found = in_columns(batch.slice(start), after)
    assert found.schema == after
    found.validate(full=True)
    expected = [{field.name: fitted(row.get(field.name), field.type) for field in after} for row in rows[start:]]
    assert found.to_pylist() == expected


@pytest.mark.parametrize("rows", [1, 8_191, 8_192, 8_193, 140_000])
def test_file_of_more_than_a_batch_is_written_whole(tmp_path: Path, rows: int) -> None:
    before = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("s", pa.struct([("a", pa.int32())]))])
    numbers = pa.array(range(rows), pa.int64())
    members = pa.StructArray.from_arrays([numbers.cast(pa.int32())], ["a"])
    pq.write_table(pa.table([numbers, members], schema=before), tmp_path / "rows.parquet")
    after = pa.schema([
        before.field("n"),
        pa.field("new", pa.string()),
        pa.field("s", pa.struct([("b", pa.string()), ("a", pa.int32())])),
    ])  # fmt: skip
    target = io.BytesIO()

    write_in_columns(pa.memory_map(str(tmp_path / "rows.parquet")).read_buffer(), target, data_schema_of(after))

    found = pq.read_table(pa.BufferReader(target.getvalue()))
    assert found.column("n").combine_chunks() == numbers
    assert found.column("new").null_count == rows
    assert found.column("s").combine_chunks().field("a") == members.field("a")
    assert found.column("s").combine_chunks().field("b").null_count == rows
