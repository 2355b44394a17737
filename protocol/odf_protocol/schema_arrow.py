"""ODF's types as Arrow's and back.

An Arrow field that may be null is an ``Option`` in ODF, at every depth. ODF's types say what values are, not how memory
holds them: the three layouts of strings, bytes and lists, the widths of decimals and the two kinds of dates are one
type each. What is lost can be kept in ``extra`` as an **encoding attribute**, which schemas in blocks never carry.

=====================================  ==========================  =====================================
Arrow                                  ODF                         encoding attribute (``arrow.apache.org/``)
=====================================  ==========================  =====================================
null, bool, (u)int8-64, float16-64     same name
timestamp(unit, zone)                  Timestamp{unit, timezone}
time32/64(unit), duration(unit)        Time{unit}, Duration{unit}
date32; date64                         Date                        date64: dateEncoding
binary, large_binary, binary_view      Binary                      bufferEncoding
fixed_size_binary(n)                   Binary{fixedLength: n}
string, large_string, string_view      String                      bufferEncoding
list, large_list, (large_)list_view    List{itemType}              bufferEncoding
fixed_size_list(n)                     List{itemType, fixedLength}
struct, map                            Struct, Map{keysSorted}
decimal32 ... decimal256(p, s)         Decimal{p, s}               decimalEncoding
run_end_encoded                        its values' type            bufferEncoding RunEnd
interval, union, dictionary, others    rejected
=====================================  ==========================  =====================================

Going to Arrow without an encoding: string, binary, list (items are called ``item``), date32, decimal128 up to 38 digits
and decimal256 above, milliseconds and UTC where a unit or zone is absent. Names, metadata and order of Arrow's fields
inside lists and maps mean nothing to ODF.

Source: ODF "DataSchema" (RFC 16), table of Arrow types.
"""

from typing import Final

import pyarrow as pa

from odf_protocol import events as odf
from odf_protocol.errors import UnsupportedError
from odf_protocol.schema_arrow_encoding import find_layout, layout_of, strip_encodings
from odf_protocol.schema_compat import describe_type

#: Deepest nesting of types: that of blocks.
MAX_DEPTH: Final = 64

#: Arrow's lengths of fixed-size types are signed 32-bit numbers.
MAX_FIXED_LENGTH: Final = 2**31 - 1

_MAX_DECIMAL128_PRECISION: Final = 38
_MAX_DECIMAL256_PRECISION: Final = 76

_SIMPLE: Final[tuple[tuple[odf.DataType, pa.DataType], ...]] = (
    (odf.DataTypeNull(), pa.null()),
    (odf.DataTypeBool(), pa.bool_()),
    (odf.DataTypeInt8(), pa.int8()),
    (odf.DataTypeInt16(), pa.int16()),
    (odf.DataTypeInt32(), pa.int32()),
    (odf.DataTypeInt64(), pa.int64()),
    (odf.DataTypeUInt8(), pa.uint8()),
    (odf.DataTypeUInt16(), pa.uint16()),
    (odf.DataTypeUInt32(), pa.uint32()),
    (odf.DataTypeUInt64(), pa.uint64()),
    (odf.DataTypeFloat16(), pa.float16()),
    (odf.DataTypeFloat32(), pa.float32()),
    (odf.DataTypeFloat64(), pa.float64()),
)
_TO_ARROW: Final = dict(_SIMPLE)
_FROM_ARROW: Final = {arrow: odf for odf, arrow in _SIMPLE}

_UNITS: Final = {
    odf.TimeUnit.SECOND: "s",
    odf.TimeUnit.MILLISECOND: "ms",
    odf.TimeUnit.MICROSECOND: "us",
    odf.TimeUnit.NANOSECOND: "ns",
}
_UNIT_OF: Final = {text: unit for unit, text in _UNITS.items()}


def arrow_schema_of(schema: odf.DataSchema) -> pa.Schema:
    """Build the Arrow schema of rows that follow ``schema``; encoding attributes choose layouts, others are left out.

    Raises:
        UnsupportedError: Arrow has no such type; names the column.
    """
    return pa.schema([arrow_field_of(field) for field in schema.fields])


def rows_schema_of(schema: odf.DataSchema) -> pa.Schema:
    """Build the Arrow schema in which this node keeps rows that follow ``schema``, whatever layouts its author names.

    Raises:
        UnsupportedError: Arrow has no such type; names the column.
    """
    return arrow_schema_of(strip_encodings(schema))


def arrow_field_of(field: odf.DataField) -> pa.Field:
    """Build the Arrow field of one column; errors as ``arrow_schema_of``."""
    return _arrow_field(field, field.name)


def arrow_type_of(data_type: odf.DataType, *, column: str = "") -> pa.DataType:
    """Build the Arrow type of values, nulls or not.

    Raises:
        UnsupportedError: Arrow has no such type; names ``column``.
    """
    match data_type:
        case odf.DataTypeOption(inner=inner):
            if isinstance(inner, odf.DataTypeOption):
                raise _rejection(data_type, column)
            return arrow_type_of(inner, column=column)
        case odf.DataTypeString():
            return pa.string()
        case odf.DataTypeDate():
            return pa.date32()
        case odf.DataTypeBinary(fixed_length=length):
            return pa.binary() if length is None else pa.binary(_length(length, data_type, column))
        case odf.DataTypeDecimal():
            return _arrow_decimal(data_type, column)
        case odf.DataTypeTimestamp(unit=unit, timezone=timezone):
            if timezone == "":
                raise _rejection(data_type, column)
            return pa.timestamp(_UNITS[unit or odf.TimeUnit.MILLISECOND], tz="UTC" if timezone is None else timezone)
        case odf.DataTypeTime(unit=unit):
            text = _UNITS[unit or odf.TimeUnit.MILLISECOND]
            return pa.time32(text) if text in ("s", "ms") else pa.time64(text)
        case odf.DataTypeDuration(unit=unit):
            return pa.duration(_UNITS[unit or odf.TimeUnit.MILLISECOND])
        case odf.DataTypeList(item_type=item_type, fixed_length=length):
            item = _nested_field("item", item_type, f"{column}[]")
            return pa.list_(item) if length is None else pa.list_(item, _length(length, data_type, column))
        case odf.DataTypeMap(key_type=key_type, value_type=value_type, keys_sorted=keys_sorted):
            if isinstance(key_type, odf.DataTypeOption):
                raise _rejection(data_type, column)
            keys = _nested_field("keys", key_type, f"{column} (keys)")
            return pa.map_(keys, _nested_field("values", value_type, f"{column} (values)"), bool(keys_sorted))
        case odf.DataTypeStruct(fields=fields):
            return pa.struct([_arrow_field(field, f"{column}.{field.name}") for field in fields])
    return _TO_ARROW[data_type]


def data_schema_of(schema: pa.Schema) -> odf.DataSchema:
    """State the types of an Arrow schema in the form that blocks hold: without encodings, metadata left out.

    Raises:
        UnsupportedError: ODF has no such type; names the column.
    """
    return strip_encodings(data_schema_with_encodings_of(schema))


def data_schema_with_encodings_of(schema: pa.Schema) -> odf.DataSchema:
    """State the types of an Arrow schema so that ``arrow_schema_of`` gives the same layouts back.

    Layouts of items in lists and of keys and values in maps have no place in ODF and are lost.

    Raises:
        UnsupportedError: ODF has no such type; names the column.
    """
    return odf.DataSchema(fields=tuple(_data_field(field, field.name, 0) for field in schema))


def _arrow_field(field: odf.DataField, column: str) -> pa.Field:
    arrow_type = arrow_type_of(field.type, column=column)
    if field.extra is not None:
        arrow_type = find_layout(arrow_type, field.extra, column)
    return _named(field.name, arrow_type, field.type, column)


def _nested_field(name: str, data_type: odf.DataType, column: str) -> pa.Field:
    return _named(name, arrow_type_of(data_type, column=column), data_type, column)


def _named(name: str, arrow_type: pa.DataType, data_type: odf.DataType, column: str) -> pa.Field:
    if isinstance(data_type, odf.DataTypeNull):
        # Arrow has no column of nulls that may not be null.
        raise _rejection(data_type, column)
    return pa.field(name, arrow_type, nullable=isinstance(data_type, odf.DataTypeOption))


def _arrow_decimal(data_type: odf.DataTypeDecimal, column: str) -> pa.DataType:
    precision, scale = data_type.precision, data_type.scale
    if 1 <= precision <= _MAX_DECIMAL128_PRECISION:
        return pa.decimal128(precision, scale)
    if 1 <= precision <= _MAX_DECIMAL256_PRECISION:
        return pa.decimal256(precision, scale)
    raise _rejection(data_type, column)


def _length(length: int, data_type: odf.DataType, column: str) -> int:
    if length > MAX_FIXED_LENGTH:
        raise _rejection(data_type, column)
    return length


def _data_field(field: pa.Field, column: str, depth: int) -> odf.DataField:
    arrow_type = field.type
    layout = layout_of(arrow_type)
    if pa.types.is_run_end_encoded(arrow_type):
        arrow_type = arrow_type.value_type
    data_type = _data_type(arrow_type, column, depth)
    extra = odf.ExtraAttributes.of(layout) if layout else None
    return odf.DataField(name=field.name, type=_optional(data_type, field.nullable), extra=extra)


def _nested_type(field: pa.Field, column: str, depth: int) -> odf.DataType:
    return _optional(_data_type(field.type, column, depth + 1), field.nullable)


def _data_type(arrow_type: pa.DataType, column: str, depth: int) -> odf.DataType:
    if depth > MAX_DEPTH:
        raise UnsupportedError(f"Arrow type of column {column[:80]}", found=f"more than {MAX_DEPTH} levels")
    simple = _FROM_ARROW.get(arrow_type)
    if simple is not None:
        return simple
    types = pa.types
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return odf.DataTypeString()
    if types.is_fixed_size_binary(arrow_type):
        return odf.DataTypeBinary(fixed_length=arrow_type.byte_width)
    if types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type):
        return odf.DataTypeBinary()
    if types.is_timestamp(arrow_type):
        return odf.DataTypeTimestamp(unit=_UNIT_OF[arrow_type.unit], timezone=arrow_type.tz)
    if types.is_time(arrow_type):
        return odf.DataTypeTime(unit=_UNIT_OF[arrow_type.unit])
    if types.is_duration(arrow_type):
        return odf.DataTypeDuration(unit=_UNIT_OF[arrow_type.unit])
    if types.is_date(arrow_type):
        return odf.DataTypeDate()
    if types.is_decimal(arrow_type):
        return odf.DataTypeDecimal(precision=arrow_type.precision, scale=arrow_type.scale)
    return _nested_data_type(arrow_type, column, depth)


def _nested_data_type(arrow_type: pa.DataType, column: str, depth: int) -> odf.DataType:
    types = pa.types
    if types.is_fixed_size_list(arrow_type):
        item = _nested_type(arrow_type.value_field, f"{column}[]", depth)
        return odf.DataTypeList(item_type=item, fixed_length=arrow_type.list_size)
    if any(
        is_list(arrow_type)
        for is_list in (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view)
    ):
        return odf.DataTypeList(item_type=_nested_type(arrow_type.value_field, f"{column}[]", depth))
    if types.is_struct(arrow_type):
        fields = (_data_field(field, f"{column}.{field.name}", depth + 1) for field in arrow_type)
        return odf.DataTypeStruct(fields=tuple(fields))
    if types.is_map(arrow_type):
        return odf.DataTypeMap(
            key_type=_nested_type(arrow_type.key_field, f"{column} (keys)", depth),
            value_type=_nested_type(arrow_type.item_field, f"{column} (values)", depth),
            keys_sorted=arrow_type.keys_sorted,
        )
    if types.is_run_end_encoded(arrow_type):
        return _data_type(arrow_type.value_type, column, depth + 1)
    raise UnsupportedError(f"Arrow type of column {column}", found=arrow_type)


def _optional(data_type: odf.DataType, is_optional: bool) -> odf.DataType:
    return odf.DataTypeOption(inner=data_type) if is_optional else data_type


def _rejection(data_type: odf.DataType, column: str) -> UnsupportedError:
    what = f"type in Arrow of column {column.lstrip('.')}" if column else "type in Arrow"
    return UnsupportedError(what, found=describe_type(data_type))
