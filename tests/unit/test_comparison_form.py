"""Values that SQL takes for equal have one form, whatever they are inside of (ROWS-12, QUERY-3)."""

import math

import numpy as np
import pyarrow as pa
import pytest

from odf_protocol.comparison_form import form_function, form_sql, has_floats, in_comparison_form

KINDS = (pa.float16(), pa.float32(), pa.float64())
REQUIRED = pa.struct([pa.field("a", pa.float64(), nullable=False), pa.field("b", pa.string())])


def numbers(kind: pa.DataType) -> pa.Array:
    """0.0, -0.0, three NaN of other bits, a number, a null."""
    quiet, words = {16: (0x7E00, "u2"), 32: (0x7FC00000, "u4"), 64: (0x7FF8 << 48, "u8")}[kind.bit_width]
    sign = 1 << (kind.bit_width - 1)
    bits = np.array([0, sign, quiet, quiet | 1, quiet | sign, 0, 0], words)
    values = bits.view(f"f{kind.bit_width // 8}").copy()
    values[5] = 1.5
    return pa.array(values, kind, mask=np.arange(7) == 6, from_pandas=False)


def bits_of(column: pa.Array) -> list[int | None]:
    return column.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[column.type.bit_width]).to_pylist()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_equal_numbers_have_the_same_bits_and_others_keep_theirs(kind: pa.DataType) -> None:
    found = bits_of(in_comparison_form(numbers(kind)))

    assert found[0] == found[1] == 0
    assert found[2] == found[3] == found[4]
    assert math.isnan(in_comparison_form(numbers(kind))[2].as_py())
    assert found[5:] == bits_of(numbers(kind))[5:]
    assert found[6] is None


def parts_of(number: pa.Array) -> dict[str, pa.Array]:
    """Arrays of seven rows in which each number stands in another way."""
    nulls = pa.array([False] * 6 + [True])
    ends = pa.array(range(8), pa.int32())
    fixed = pa.FixedSizeListArray.from_arrays(number, 1)
    struct = pa.StructArray.from_arrays([number, number], ["x", "y"], mask=nulls)
    lists = pa.ListArray.from_arrays(ends, number, mask=nulls)
    return {
        "struct": struct,
        "list": lists,
        "large-list": lists.cast(pa.large_list(number.type)),
        "fixed-list": fixed,
        "list-of-structs": pa.ListArray.from_arrays(ends, struct),
        "struct-of-lists": pa.StructArray.from_arrays([lists], ["z"], mask=nulls),
    }


@pytest.mark.parametrize("place", [*parts_of(numbers(pa.float64()))])
@pytest.mark.parametrize("kind", KINDS[1:], ids=str)
def test_equal_values_are_one_inside_of_others(kind: pa.DataType, place: str) -> None:
    column = parts_of(numbers(kind))[place]

    found = in_comparison_form(column)

    assert found.type == column.type
    assert [repr(each) for each in found.to_pylist()] == [
        repr(each).replace("-0.0", "0.0") for each in column.to_pylist()
    ]
    whole = [found.slice(at, 1) for at in range(7)]
    raw = [pa.table({"v": pa.concat_arrays([each])}).combine_chunks() for each in whole]
    written = [_content(each) for each in raw]
    assert written[0] == written[1]
    assert written[2] == written[3] == written[4]
    assert len({*written}) == 4
    assert in_comparison_form(column.slice(2, 3)).to_pylist().__repr__() == repr(found.to_pylist()[2:5])


def _content(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_null_of_a_struct_whose_parts_are_required_stays_null() -> None:
    column = pa.array([{"a": -0.0, "b": "x"}, None], REQUIRED)

    found = in_comparison_form(column)

    assert (found.type, found.to_pylist()) == (REQUIRED, [{"a": 0.0, "b": "x"}, None])
    assert not math.copysign(1, found[0]["a"].as_py()) < 0
    found.validate(full=True)


def test_chunks_stay_chunks_and_nothing_is_nothing() -> None:
    empty = pa.chunked_array([], pa.list_(pa.float32()))
    assert in_comparison_form(empty).equals(empty)
    two = pa.chunked_array([[-0.0], [None, math.nan]], pa.float64())
    assert in_comparison_form(two).num_chunks == 2


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.float64())])
def test_column_without_numbers_of_that_kind_is_given_back_as_it_is(kind: pa.DataType) -> None:
    column = pa.nulls(2, kind)
    assert not has_floats(kind)
    assert in_comparison_form(column) is column
    assert form_sql("k", kind) == "k"


def test_functions_of_other_types_have_other_names() -> None:
    kinds = [*KINDS, pa.list_(pa.float64()), pa.struct([("a", pa.float64())]), REQUIRED]
    assert len({form_function(kind) for kind in kinds}) == len(kinds)
    assert form_sql('"k"', pa.float32()) == f'{form_function(pa.float32())}("k")'
