"""Encoding attributes: which of Arrow's layouts a column's values had, kept beside ODF's layout-free type.

Attributes and their values:

* ``arrow.apache.org/bufferEncoding``: ``{kind: Contiguous | View, offsetBitWidth: 32 | 64}`` of strings, bytes and
  lists, or ``{kind: RunEnd, runEndsBitWidth: 16 | 32 | 64}`` of any type
* ``arrow.apache.org/dateEncoding``: ``{unit: Day | Millisecond}``
* ``arrow.apache.org/decimalEncoding``: ``{bitWidth: 32 | 64 | 128 | 256}``

Schemas in blocks never carry them, see ``strip_encodings``: a slice may be laid out as its writer likes.

Source: ODF "DataSchema" (RFC 16), extra attributes of Arrow.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
    ExtraAttributes,
)

BUFFER_ENCODING: Final = "arrow.apache.org/bufferEncoding"
DATE_ENCODING: Final = "arrow.apache.org/dateEncoding"
DECIMAL_ENCODING: Final = "arrow.apache.org/decimalEncoding"

_ENCODINGS: Final = (BUFFER_ENCODING, DATE_ENCODING, DECIMAL_ENCODING)

_BUFFER_LAYOUTS: Final[tuple[tuple[Callable[[pa.DataType], bool], str, int], ...]] = (
    (pa.types.is_string, "Contiguous", 32),
    (pa.types.is_binary, "Contiguous", 32),
    (pa.types.is_list, "Contiguous", 32),
    (pa.types.is_large_string, "Contiguous", 64),
    (pa.types.is_large_binary, "Contiguous", 64),
    (pa.types.is_large_list, "Contiguous", 64),
    (pa.types.is_string_view, "View", 32),
    (pa.types.is_binary_view, "View", 32),
    (pa.types.is_list_view, "View", 32),
    (pa.types.is_large_list_view, "View", 64),
)

_STRINGS: Final = {("Contiguous", 32): pa.string, ("Contiguous", 64): pa.large_string, ("View", 32): pa.string_view}
_BINARIES: Final = {("Contiguous", 32): pa.binary, ("Contiguous", 64): pa.large_binary, ("View", 32): pa.binary_view}
_LISTS: Final = {
    ("Contiguous", 32): pa.list_,
    ("Contiguous", 64): pa.large_list,
    ("View", 32): pa.list_view,
    ("View", 64): pa.large_list_view,
}
_RUN_ENDS: Final = {16: pa.int16, 32: pa.int32, 64: pa.int64}
_DECIMALS: Final = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}


def layout_of(arrow_type: pa.DataType) -> dict[str, Any]:
    """Describe the layout of a type as attributes; empty where ODF's type says everything."""
    if pa.types.is_run_end_encoded(arrow_type):
        return {BUFFER_ENCODING: {"kind": "RunEnd", "runEndsBitWidth": arrow_type.run_end_type.bit_width}}
    if pa.types.is_date64(arrow_type):
        return {DATE_ENCODING: {"unit": "Millisecond"}}
    if pa.types.is_decimal(arrow_type):
        return {DECIMAL_ENCODING: {"bitWidth": arrow_type.bit_width}}
    for is_layout, kind, bits in _BUFFER_LAYOUTS:
        if is_layout(arrow_type):
            return {BUFFER_ENCODING: {"kind": kind, "offsetBitWidth": bits}}
    return {}


def find_layout(arrow_type: pa.DataType, extra: ExtraAttributes, column: str) -> pa.DataType:
    """Return the type with the layout that ``extra`` asks for; attributes of others are not looked at.

    Raises:
        UnsupportedError: A layout that the type cannot have, or that nobody knows; names the column.
    """
    attributes = extra.to_dict()
    date, decimal, buffer = (attributes.get(name) for name in (DATE_ENCODING, DECIMAL_ENCODING, BUFFER_ENCODING))
    if date is not None:
        if not pa.types.is_date(arrow_type) or date not in ({"unit": "Day"}, {"unit": "Millisecond"}):
            raise _rejection(DATE_ENCODING, date, column)
        arrow_type = pa.date64() if date["unit"] == "Millisecond" else pa.date32()
    if decimal is not None:
        arrow_type = _decimal_of_width(arrow_type, decimal, column)
    match buffer:
        case None:
            return arrow_type
        case {"kind": "RunEnd", "runEndsBitWidth": int(bits)} if bits in _RUN_ENDS:
            return pa.run_end_encoded(_RUN_ENDS[bits](), arrow_type)
        case {"kind": str(kind), "offsetBitWidth": int(bits)}:
            return _with_offsets(arrow_type, kind, bits, column)
    raise _rejection(BUFFER_ENCODING, buffer, column)


def strip_encodings(schema: DataSchema) -> DataSchema:
    """Remove encoding attributes at every depth, and ``extra`` where nothing else is in it."""
    return DataSchema(fields=_strip_fields(schema.fields), extra=_strip_extra(schema.extra))


def _with_offsets(arrow_type: pa.DataType, kind: str, bits: int, column: str) -> pa.DataType:
    layout = (kind, bits)
    if pa.types.is_string(arrow_type) and layout in _STRINGS:
        return _STRINGS[layout]()
    if pa.types.is_binary(arrow_type) and layout in _BINARIES:
        return _BINARIES[layout]()
    if pa.types.is_list(arrow_type) and layout in _LISTS:
        return _LISTS[layout](arrow_type.value_field)
    raise _rejection(BUFFER_ENCODING, f"{kind} {bits} of {arrow_type}", column)


def _decimal_of_width(arrow_type: pa.DataType, encoding: Any, column: str) -> pa.DataType:
    match encoding:
        case {"bitWidth": int(bits)} if bits in _DECIMALS and pa.types.is_decimal(arrow_type):
            try:
                return _DECIMALS[bits](arrow_type.precision, arrow_type.scale)
            except ValueError as error:
                raise _rejection(DECIMAL_ENCODING, f"{arrow_type} in {bits} bits", column) from error
    raise _rejection(DECIMAL_ENCODING, encoding, column)


def _strip_fields(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
    return tuple(replace(field, type=_strip_type(field.type), extra=_strip_extra(field.extra)) for field in fields)


def _strip_type(data_type: DataType) -> DataType:
    match data_type:
        case DataTypeOption(inner=inner):
            return DataTypeOption(inner=_strip_type(inner))
        case DataTypeStruct(fields=fields):
            return DataTypeStruct(fields=_strip_fields(fields))
        case DataTypeList(item_type=item_type):
            return replace(data_type, item_type=_strip_type(item_type))
        case DataTypeMap(key_type=key_type, value_type=value_type):
            return replace(data_type, key_type=_strip_type(key_type), value_type=_strip_type(value_type))
    return data_type


def _strip_extra(extra: ExtraAttributes | None) -> ExtraAttributes | None:
    if extra is None:
        return None
    attributes = extra.to_dict()
    kept = {name: value for name, value in attributes.items() if name not in _ENCODINGS}
    if len(kept) == len(attributes):
        return extra
    return ExtraAttributes.of(kept) if kept else None


def _rejection(attribute: str, found: object, column: str) -> UnsupportedError:
    return UnsupportedError(f"attribute {attribute} of column {column.lstrip('.')}", found=found)
