"""Rows that were written under an earlier schema of their dataset, in the columns of a later one (SCHEMA-5).

A schema gains optional fields, also inside structs and lists, and fields change places; nothing else changes
(SCHEMA-1). So what a row lacks is null, and all else is as it was.

Source: clause SCHEMA-5 in ``spec/manifests.md``; ROWS-9 in ``spec/extensions/acceptance.md``.
"""

from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.host.slices import open_slice_file
from odf_engines.reading.row_writing import GroupWriter
from odf_engines.reading.slices import open_slice
from odf_protocol.events import DataSchema
from odf_protocol.schema_arrow import rows_schema_of

_BATCH_ROWS: Final = 8_192  # guess: of long texts that a small file repeats, some megabytes


def write_in_columns(file: pa.Buffer, target: BinaryIO, schema: DataSchema) -> None:
    """Write the rows of a file that this node wrote in the columns of a later schema of their dataset.

    Args:
        file: With rows in an earlier schema.
        target: The new file; what it got counts only once nothing was raised.
        schema: Later in the same chain.
    """
    columns = rows_schema_of(schema)
    with open_slice(file) as opened, open_slice_file(target, columns) as writer:
        groups = GroupWriter(writer, columns)
        for batch in opened.iter_batches(_BATCH_ROWS):
            groups.take(in_columns(batch, columns))
        groups.flush()


def in_columns(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Return rows in the columns of a later schema; values that they lack are null."""
    held = {*rows.schema.names}
    values = [
        _fitted(rows.column(field.name), field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
        for field in columns
    ]
    return pa.RecordBatch.from_arrays(values, schema=columns)


def _fitted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        held = {values.type.field(number).name for number in range(values.type.num_fields)}
        fields = [kind.field(number) for number in range(kind.num_fields)]
        members = [
            _fitted(pc.struct_field(values, field.name), field.type)
            if field.name in held
            else pa.nulls(len(values), field.type)
            for field in fields
        ]
        return pa.StructArray.from_arrays(members, fields=fields, mask=pc.is_null(values))
    if pa.types.is_list(kind) and pa.types.is_list(values.type):
        lengths = pc.fill_null(pc.list_value_length(values), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        items = _fitted(values.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=pc.is_null(values))
    return values.cast(kind)
