"""The types under which a slice is hashed: those its writer embedded in the file, as far as they change the hash.

Arrow writers store their schema in the Parquet file, and the reference implementation's reader goes back to it. So does
pyarrow, except for ``date64``, which it leaves as the ``date32`` that Parquet stores.

Source: ODF "Logical Hashes"; Arrow "Parquet: ARROW:schema".
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from odf_protocol.errors import MalformedError

_KEY: Final = b"ARROW:schema"
_MAX_EMBEDDED_BYTES: Final = 1 << 24  # guess: thousands of columns with long names


def reader_schema(file_schema: pa.Schema, key_value_metadata: Mapping[bytes, bytes] | None) -> pa.Schema:
    """Return the schema to hash a slice with.

    Args:
        file_schema: The schema as pyarrow's Parquet reader gives it.
        key_value_metadata: Of the file's footer; untrusted.

    Raises:
        MalformedError: The embedded schema cannot be read.
    """
    embedded = (key_value_metadata or {}).get(_KEY)
    if embedded is None:
        return file_schema
    if len(embedded) > _MAX_EMBEDDED_BYTES:
        raise MalformedError(
            "embedded Arrow schema", expected=f"{_MAX_EMBEDDED_BYTES} bytes at most", found=len(embedded)
        )
    try:
        written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(embedded, validate=True)))
        if written.names != file_schema.names:
            return file_schema
        return pa.schema([_restored(read, stated) for read, stated in zip(file_schema, written, strict=True)])
    except (pa.ArrowException, binascii.Error, OSError, UnicodeDecodeError) as error:  # names need not be UTF-8
        raise MalformedError("embedded Arrow schema", found=error) from error


def as_reader_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of ``reader_schema`` from one as pyarrow reads it.

    Raises:
        MalformedError: The batch does not have the schema's columns in the schema's order.
    """
    if batch.schema.names == schema.names:
        types = schema.types
        if batch.schema.types == types:
            return batch
        if batch.schema.types == [_stored(data_type) for data_type in types]:
            return batch.cast(schema)
    raise MalformedError("record batch", expected=_one_line(schema), found=_one_line(batch.schema))


def _restored(read: pa.Field, written: pa.Field) -> pa.Field:
    return read.with_type(_restored_type(read.type, written.type))


def _restored_type(read: pa.DataType, written: pa.DataType) -> pa.DataType:
    if pat.is_date32(read) and pat.is_date64(written):
        return written
    if pat.is_struct(read) and pat.is_struct(written) and read.num_fields == written.num_fields:
        return pa.struct([_restored(mine, stated) for mine, stated in zip(read, written, strict=True)])
    for is_list, list_of in ((pat.is_list, pa.list_), (pat.is_large_list, pa.large_list)):
        if is_list(read) and is_list(written):
            return list_of(_restored(read.value_field, written.value_field))
    if pat.is_fixed_size_list(read) and pat.is_fixed_size_list(written):
        return pa.list_(_restored(read.value_field, written.value_field), read.list_size)
    return read


def _stored(data_type: pa.DataType) -> pa.DataType:
    """Return the type as pyarrow reads it."""
    if pat.is_date64(data_type):
        return pa.date32()
    if pat.is_struct(data_type):
        return pa.struct([child.with_type(_stored(child.type)) for child in data_type])
    if pat.is_list(data_type) or pat.is_large_list(data_type) or pat.is_fixed_size_list(data_type):
        item = data_type.value_field.with_type(_stored(data_type.value_type))
        if pat.is_fixed_size_list(data_type):
            return pa.list_(item, data_type.list_size)
        return pa.large_list(item) if pat.is_large_list(data_type) else pa.list_(item)
    return data_type


def _one_line(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
