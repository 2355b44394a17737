"""The same values in other layouts of memory."""

import pyarrow as pa
import pyarrow.types as pat

from support.arrow_data import is_any_bytes, is_any_text


def relaid_schema(schema: pa.Schema, text: pa.DataType, binary: pa.DataType) -> pa.Schema:
    """A schema with every text and binary in another layout, and every list a large one."""
    return pa.schema([field.with_type(_relaid(field.type, text, binary)) for field in schema])


def _relaid(data_type: pa.DataType, text: pa.DataType, binary: pa.DataType) -> pa.DataType:
    if is_any_text(data_type):
        return text
    if is_any_bytes(data_type):
        return binary
    if pat.is_struct(data_type):
        return pa.struct([field.with_type(_relaid(field.type, text, binary)) for field in data_type])
    if pat.is_list(data_type) or pat.is_large_list(data_type):
        item = data_type.value_field
        return pa.large_list(item.with_type(_relaid(item.type, text, binary)))
    return data_type
