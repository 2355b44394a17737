"""Rows of older slices in the columns that a dataset has now (SCHEMA-5)."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_engines.reading.evolved_rows import in_columns
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import find_incompatibility

OLD = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("place", pa.struct([("x", pa.int32())])),
        pa.field("tags", pa.list_(pa.struct([("name", pa.string())]))),
    ]
)
NEW = pa.schema(
    [
        pa.field("note", pa.string()),
        pa.field("tags", pa.list_(pa.struct([("since", pa.date32()), ("name", pa.string())]))),
        pa.field("place", pa.struct([("x", pa.int32()), ("y", pa.float64())])),
        pa.field("id", pa.int64(), nullable=False),
    ]
)


def test_optional_fields_that_came_since_are_null_at_every_depth_schema_5() -> None:
    rows = [{"id": 1, "place": {"x": 2}, "tags": [{"name": "a"}, None]}, {"id": 2, "place": None, "tags": None}]
    assert find_incompatibility(data_schema_of(OLD), data_schema_of(NEW)) is None
    found = in_columns(pa.RecordBatch.from_pylist(rows, OLD), NEW)
    assert found.schema == NEW
    assert found.to_pylist() == [
        {"note": None, "tags": [{"since": None, "name": "a"}, None], "place": {"x": 2, "y": None}, "id": 1},
        {"note": None, "tags": None, "place": None, "id": 2},
    ]


def test_part_of_a_batch_keeps_its_own_rows_schema_5() -> None:
    rows = [{"id": n, "place": {"x": n} if n % 3 else None, "tags": [{"name": str(n)}] * (n % 4)} for n in range(100)]
    batch = pa.RecordBatch.from_pylist(rows, OLD)
    whole = in_columns(batch, NEW).to_pylist()
    assert [each["place"] for each in whole] == [each["place"] and each["place"] | {"y": None} for each in rows]
    for start, count in ((0, 1), (7, 50), (99, 1), (40, 0)):
        assert in_columns(batch.slice(start, count), NEW).to_pylist() == whole[start : start + count]


LEAVES = st.sampled_from([pa.int32(), pa.string(), pa.bool_()])
TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"f{number}", each) for number, each in enumerate(types)])
        ),
    ),
    max_leaves=6,
)


def evolved(kind: pa.DataType, choose: Any) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(evolved(kind.value_type, choose))
    if not pa.types.is_struct(kind):
        return kind
    fields = [pa.field(each.name, evolved(each.type, choose)) for each in kind]
    fields += [pa.field(f"new{kind.num_fields}-{number}", choose(TYPES)) for number in range(choose(st.integers(0, 2)))]
    return pa.struct(choose(st.permutations(fields)))


def expected(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [expected(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {each.name: expected(value.get(each.name), each.type) for each in kind}
    return value


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_list(kind):
        return st.none() | st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries({each.name: values_of(each.type) for each in kind})
    plain = {pa.int32(): st.integers(0, 9), pa.string(): st.text("ab", max_size=2), pa.bool_(): st.booleans()}
    return st.none() | plain[kind]


@settings(deadline=None)
@given(data=st.data())
def test_any_row_keeps_what_it_says_through_any_evolutions_schema_5(data: st.DataObject) -> None:
    kind = pa.struct([("a", data.draw(TYPES)), ("b", data.draw(TYPES))])
    rows = data.draw(st.lists(values_of(kind).filter(lambda row: row is not None), max_size=5))
    once = evolved(kind, data.draw)
    twice = evolved(once, data.draw)
    first, middle, last = (pa.schema(list(each)) for each in (kind, once, twice))
    assert find_incompatibility(data_schema_of(first), data_schema_of(last)) is None
    batch = pa.RecordBatch.from_pylist(rows, first)
    at_once = in_columns(batch, last)
    assert at_once.to_pylist() == [expected(row, twice) for row in rows]
    assert at_once.equals(in_columns(in_columns(batch, middle), last))
