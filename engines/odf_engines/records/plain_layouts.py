"""Columns in layouts that Arrow's functions lack or get wrong, in those that all of them have.

Texts and lists by views can be read, but not filtered, and a list by views that Arrow casts has fewer offsets than it
says, or wrong ones where it is a part of another. Rows of such a list may share items, so that a few bytes stand for
any number: what they stand for is made here, and is memory that is bounded as any other.

Source: https://arrow.apache.org/docs/format/Columnar.html#listview-layout
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def plain_layout(column: pa.Array) -> pa.Array:
    """Give a column that was validated, without views; one that has none as it is.

    Raises:
        MemoryError: What stands in it is more than there is room for.
    """
    if not _has_views(column.type):
        return column
    kind, types = column.type, pa.types
    if types.is_string_view(kind):
        return column.cast(pa.large_string())
    if types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    if isinstance(column, pa.ExtensionArray):
        return plain_layout(column.storage)
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, plain_layout(column.dictionary))
    if types.is_struct(kind):
        parts = [plain_layout(column.field(place)) for place in range(kind.num_fields)]
        fields = [field.with_type(part.type) for field, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
    if types.is_fixed_size_list(kind):
        column = column.cast(pa.list_(kind.value_field))
    # In the order of the rows, without what only a null has.
    items = plain_layout(column.flatten())
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    as_type = pa.large_list(kind.value_field.with_type(items.type))
    return pa.LargeListArray.from_arrays(pa.array(ends), items, type=as_type, mask=column.is_null())


def _has_views(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return True
    if types.is_dictionary(kind):
        return _has_views(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _has_views(kind.storage_type)
    return any(_has_views(kind.field(place).type) for place in range(kind.num_fields))
