"""Types that every reader of Iceberg reads from a Parquet file as what they are, and what others are turned into.

No value is rounded. A type that Iceberg lacks becomes a wider number, a whole number of its own unit, or a text.

Source: clauses ICEBERG-11 and ICEBERG-12 in ``spec/plug-ins/iceberg.md``; Iceberg table specification, "Primitive
Types".
"""

from dataclasses import replace
from typing import Final

from odf_protocol import events as odf

MAX_DECIMAL_DIGITS: Final = 38
"""Source: Iceberg table specification, "Primitive Types"."""

_WIDER: Final[dict[type[odf.DataType], odf.DataType]] = {
    # Readers written in Java take the 32 bits of an unsigned number for a signed one.
    odf.DataTypeUInt8: odf.DataTypeInt32(),
    odf.DataTypeUInt16: odf.DataTypeInt32(),
    odf.DataTypeUInt32: odf.DataTypeInt64(),
    odf.DataTypeUInt64: odf.DataTypeDecimal(precision=20, scale=0),
    odf.DataTypeFloat16: odf.DataTypeFloat32(),
    odf.DataTypeDuration: odf.DataTypeInt64(),
    odf.DataTypeNull: odf.DataTypeString(),
}


def readable_schema(schema: odf.DataSchema) -> odf.DataSchema:
    """Return the schema in which Iceberg's readers are given rows of ``schema``; the same types where they have all."""
    return odf.DataSchema(fields=_readable_fields(schema.fields))


def is_readable(schema: odf.DataSchema) -> bool:
    """Say whether Iceberg's readers read rows of a schema from its files as they are."""
    return all(readable_type(each.type) == each.type for each in schema.fields)


def _readable_fields(fields: tuple[odf.DataField, ...]) -> tuple[odf.DataField, ...]:
    return tuple(odf.DataField(name=each.name, type=readable_type(each.type)) for each in fields)


def readable_type(data_type: odf.DataType) -> odf.DataType:
    """Return the type that a column of ``data_type`` has in a file that Iceberg's readers are given."""
    match data_type:
        case odf.DataTypeOption(inner=inner):
            return odf.DataTypeOption(inner=readable_type(inner))
        case odf.DataTypeList(item_type=item_type):
            return replace(data_type, item_type=readable_type(item_type))
        case odf.DataTypeMap(key_type=key_type, value_type=value_type):
            return replace(data_type, key_type=readable_type(key_type), value_type=readable_type(value_type))
        case odf.DataTypeStruct(fields=fields):
            return replace(data_type, fields=_readable_fields(fields))
        case odf.DataTypeDecimal(precision=precision, scale=scale):
            return data_type if precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision else odf.DataTypeString()
        case odf.DataTypeTime(unit=odf.TimeUnit.NANOSECOND) | odf.DataTypeTimestamp(unit=odf.TimeUnit.NANOSECOND):
            return odf.DataTypeInt64()
        case odf.DataTypeTime():
            return odf.DataTypeTime(unit=odf.TimeUnit.MICROSECOND)
        case odf.DataTypeTimestamp(timezone=timezone) if timezone not in (None, "UTC"):
            return replace(data_type, timezone="UTC")
    return _WIDER.get(type(data_type), data_type)
