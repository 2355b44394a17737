"""The form in which values are compared with one another: 0.0 for -0.0, and one NaN for all of them.

Rows and keys are equal as SQL groups them (ROWS-12). Arrow and DataFusion compare, group and join floating-point
numbers by their bits, so whatever looks for equal rows or keys gives them this form first, and goes on by bits.

Source: clause ROWS-12 in ``spec/extensions/acceptance.md``; QUERY-3 in ``spec/query.md``.
"""

import hashlib
import math
from collections.abc import Iterable
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FUNCTION: Final = "odf_comparison_form_"
_NAME_DIGITS: Final = 16

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def has_floats(kind: pa.DataType) -> bool:
    """Return whether there are floating-point numbers in values of a type; those of maps are never compared."""
    if pa.types.is_map(kind):
        return False
    return bool(pa.types.is_floating(kind)) or any(
        has_floats(kind.field(place).type) for place in range(kind.num_fields)
    )


def in_comparison_form(column: Column) -> Column:
    """Return values of the same type; those that are equal have the same bits, also inside of lists and structs."""
    if not has_floats(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([in_comparison_form(chunk) for chunk in column.chunks], column.type)
    kind = column.type
    if pa.types.is_floating(kind):
        return _in_one_form(column)
    if pa.types.is_struct(kind):
        parts = [in_comparison_form(each) for each in column.flatten()]  # a child is null where its struct is
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if not pa.types.is_large_list(kind):  # of the layouts of lists this one holds whatever another one does
        return in_comparison_form(column.cast(pa.large_list(kind.value_field))).cast(kind)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    items = in_comparison_form(column.flatten())
    return pa.LargeListArray.from_arrays(ends, items, type=kind, mask=column.is_null())


def with_comparison_forms(rows: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return rows with some columns in the form in which they are compared."""
    for name in names:
        rows = rows.set_column(rows.schema.get_field_index(name), name, in_comparison_form(rows.column(name)))
    return rows


def _in_one_form(numbers: pa.Array) -> pa.Array:
    if pa.types.is_float16(numbers.type):  # Arrow adds none of these; a wider number has the same value
        return _in_one_form(numbers.cast(pa.float32())).cast(numbers.type)
    one_zero = pc.add(numbers, pa.scalar(0.0, numbers.type))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(math.nan, numbers.type), one_zero)


def form_function(kind: pa.DataType) -> str:
    """Return the name under which DataFusion has ``in_comparison_form`` for a type of columns."""
    return _FUNCTION + hashlib.sha3_256(str(kind).encode()).hexdigest()[:_NAME_DIGITS]


def form_sql(expression: str, kind: pa.DataType) -> str:
    """Return the expression of DataFusion's SQL for the comparison form of another one.

    Args:
        expression: Of a column as ``NAME`` or ``NAME__state`` has it, or a type that such a column has.
        kind: Its type by the schema of the dataset.
    """
    return f"{form_function(kind)}({expression})" if has_floats(kind) else expression
