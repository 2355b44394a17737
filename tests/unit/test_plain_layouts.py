"""Views of texts and lists, in layouts that all of Arrow's functions have: the same values, of every part (ING-3)."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_engines.records.plain_layouts import plain_layout

TEXTS, NUMBERS = pa.string_view(), pa.list_view(pa.int8())
KINDS = [
    TEXTS,
    pa.binary_view(),
    NUMBERS,
    pa.large_list_view(TEXTS),
    pa.list_(TEXTS),
    pa.list_(TEXTS, 2),
    pa.list_(NUMBERS, 2),
    pa.large_list(NUMBERS),
    pa.struct([("a", TEXTS), ("b", NUMBERS)]),
    pa.list_view(pa.struct([("x", TEXTS)])),
]


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    types = pa.types
    if types.is_struct(kind):
        found = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif types.is_fixed_size_list(kind):
        found = st.lists(values_of(kind.value_type), min_size=kind.list_size, max_size=kind.list_size)
    elif kind.num_fields:
        found = st.lists(values_of(kind.value_type), max_size=3)
    elif types.is_string_view(kind):
        found = st.text(max_size=20)
    else:
        found = st.binary(max_size=20) if types.is_binary_view(kind) else st.integers(-9, 9)
    return st.none() | found


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(data=st.data())
def test_part_of_a_column_has_the_values_that_it_had_ing_3(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(kind), max_size=8))
    first, count = data.draw(st.integers(0, len(values))), data.draw(st.integers(0, 8))
    found = plain_layout(pa.array(values, kind).slice(first, count))
    found.validate(full=True)
    assert found.to_pylist() == values[first : first + count]
    assert "view" not in str(found.type)


def test_rows_that_share_items_or_have_them_in_another_order_keep_theirs_ing_3() -> None:
    starts, sizes = pa.array([3, 0, 1, 0], pa.int32()), pa.array([1, 3, 2, 4], pa.int32())
    column = pa.ListViewArray.from_arrays(
        starts, sizes, pa.array([1, 2, 3, 4]), mask=pa.array([False, True, False, False])
    )
    assert plain_layout(column).to_pylist() == [[4], None, [2, 3], [1, 2, 3, 4]]


def test_column_without_views_is_the_same() -> None:
    column = pa.array([{"a": ["x"]}])
    assert plain_layout(column) is column


def test_coded_views_and_those_that_an_extension_stands_on_are_found() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["x" * 20], TEXTS))
    assert plain_layout(coded).to_pylist() == ["x" * 20] * 2
    stands = pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), pa.array(["{}"], TEXTS))
    assert plain_layout(stands).type == pa.large_string()
