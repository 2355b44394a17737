"""Values inside structs and lists, put in the place of others: the way back of ``validation.columns``.

Source: clause CONV-4 in ``spec/conversion.md``.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def type_with(outer: pa.DataType, steps: Sequence[str], inner: pa.DataType) -> pa.DataType:
    """Return the type of a column whose values at a path get another type.

    Args:
        outer: Of the column.
        steps: See ``ColumnPath``.
        inner: Of the values.
    """
    if not steps:
        return inner
    step, *rest = steps
    if step == "[]":
        return pa.list_(pa.field("item", type_with(outer.value_type, rest, inner), nullable=True))
    name = step.removeprefix(".")
    return pa.struct(
        [
            pa.field(each.name, type_with(each.type, rest, inner), nullable=True) if each.name == name else each
            for each in outer
        ]
    )


def values_put(column: pa.Array, steps: Sequence[str], values: pa.Array) -> pa.Array:
    """Return a column with other values at a path, as many as ``ColumnPath.read`` gives, in their order."""
    if not steps:
        return values
    step, *rest = steps
    if step == "[]":
        if pa.types.is_fixed_size_list(column.type):
            column = column.cast(pa.list_(column.type.value_field))
        inner = values_put(pc.list_flatten(column), rest, values)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        kind = pa.list_(pa.field("item", inner.type, nullable=True))
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, type=kind, mask=mask)
    name = step.removeprefix(".")
    kind = type_with(column.type, steps, values.type if not rest else pa.null())
    children = []
    for field in column.type:
        child = pc.struct_field(column, field.name)
        children.append(values_put(child, rest, values) if field.name == name else child)
    fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
