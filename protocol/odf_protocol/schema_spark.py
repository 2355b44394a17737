"""ODF's types as Spark's, by name only: this module needs no Spark.

Spark has no unsigned integers; it reads them from Parquet as the next wider type, and so they are named here. Types
that Spark cannot read, or reads as something that means less, are rejected with the column's name.

=====================================  =========================  ==================================
ODF                                    Spark                      remark
=====================================  =========================  ==================================
Bool, Int8 ... Int64, Float32/64       BOOLEAN, TINYINT ...
UInt8, UInt16, UInt32, UInt64          SMALLINT, INT, BIGINT,     wider; values keep
                                       DECIMAL(20,0)
Decimal(p, s)                          DECIMAL(p,s)               p up to 38, s not negative
String, Binary, Date                   STRING, BINARY, DATE       fixed lengths are not kept
Timestamp(s, ms, us; any zone)         TIMESTAMP                  the zone is not kept, the instant is
List, Map, Struct                      ARRAY, MAP, STRUCT
Null                                   VOID
Timestamp(ns), Time, Duration,         rejected                    Spark 4.3 cannot read them from
Float16, Decimal beyond 38 digits                                 Parquet, or reads bare numbers
=====================================  =========================  ==================================

Source: measured with Spark 4.3.0, reading Parquet files of each type.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from odf_protocol import events as odf
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.schema_compat import describe_type

#: Source: Spark SQL reference, DecimalType.
MAX_DECIMAL_PRECISION: Final = 38

#: Deepest nesting read from Spark's JSON; deeper than blocks can hold. # guess
MAX_DEPTH: Final = 64

_NAMES: Final[dict[type[Any], str]] = {
    odf.DataTypeBinary: "BINARY",
    odf.DataTypeBool: "BOOLEAN",
    odf.DataTypeDate: "DATE",
    odf.DataTypeFloat32: "FLOAT",
    odf.DataTypeFloat64: "DOUBLE",
    odf.DataTypeInt8: "TINYINT",
    odf.DataTypeInt16: "SMALLINT",
    odf.DataTypeInt32: "INT",
    odf.DataTypeInt64: "BIGINT",
    odf.DataTypeNull: "VOID",
    odf.DataTypeString: "STRING",
    odf.DataTypeUInt8: "SMALLINT",
    odf.DataTypeUInt16: "INT",
    odf.DataTypeUInt32: "BIGINT",
    odf.DataTypeUInt64: "DECIMAL(20,0)",
}

# Whatever Spark computes with microseconds, slices hold milliseconds in UTC; see the writer's rules.
_SLICE_TIMESTAMP: Final = odf.DataTypeTimestamp(unit=odf.TimeUnit.MILLISECOND, timezone="UTC")

_OF_SPARK: Final[dict[str, odf.DataType]] = {
    "boolean": odf.DataTypeBool(),
    "byte": odf.DataTypeInt8(),
    "short": odf.DataTypeInt16(),
    "integer": odf.DataTypeInt32(),
    "long": odf.DataTypeInt64(),
    "float": odf.DataTypeFloat32(),
    "double": odf.DataTypeFloat64(),
    "string": odf.DataTypeString(),
    "binary": odf.DataTypeBinary(),
    "date": odf.DataTypeDate(),
    "timestamp": _SLICE_TIMESTAMP,
    "timestamp_ntz": _SLICE_TIMESTAMP,
}

_DECIMAL: Final = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)", re.ASCII)


def spark_type_of(data_type: odf.DataType, *, column: str = "") -> str:
    """Name the Spark type that holds values of ``data_type``, as Spark SQL writes it.

    Whether a column may hold nulls is no part of the type; inside structs it is stated, inside lists and maps Spark SQL
    cannot state it and always allows them.

    Raises:
        UnsupportedError: Spark cannot hold the type; names ``column`` and the path in it.
    """
    match data_type:
        case odf.DataTypeOption(inner=inner):
            return spark_type_of(inner, column=column)
        case odf.DataTypeDecimal(precision=precision, scale=scale):
            if not 1 <= precision <= MAX_DECIMAL_PRECISION or not 0 <= scale <= precision:
                raise _rejection(data_type, column, f"decimals of up to {MAX_DECIMAL_PRECISION} digits")
            return f"DECIMAL({precision},{scale})"
        case odf.DataTypeTimestamp(unit=unit):
            if unit is odf.TimeUnit.NANOSECOND:
                raise _rejection(data_type, column, "timestamps of up to microseconds")
            return "TIMESTAMP"
        case odf.DataTypeList(item_type=item_type):
            return f"ARRAY<{spark_type_of(item_type, column=f'{column}[]')}>"
        case odf.DataTypeMap(key_type=key_type, value_type=value_type):
            key = spark_type_of(key_type, column=f"{column} (keys)")
            return f"MAP<{key}, {spark_type_of(value_type, column=f'{column} (values)')}>"
        case odf.DataTypeStruct(fields=fields):
            return f"STRUCT<{', '.join(_column(field, f'{column}.{field.name}', ': ') for field in fields)}>"
    name = _NAMES.get(type(data_type))
    if name is None:
        raise _rejection(data_type, column, "another type; cast it where the data is made")
    return name


def spark_columns_of(schema: odf.DataSchema) -> str:
    """Write a schema as Spark column definitions: ```offset` BIGINT NOT NULL, `city` STRING``.

    Raises:
        UnsupportedError: As ``spark_type_of``, with the column's name.
    """
    return ", ".join(_column(field, field.name, " ") for field in schema.fields)


def quote_spark_name(name: str) -> str:
    """Put a name between backticks, so that Spark takes it as it is."""
    return "`" + name.replace("`", "``") + "`"


def parse_spark_schema(text: str) -> odf.DataSchema:
    """Read a Spark schema from the JSON that ``df.schema.json()`` gives.

    Timestamps of both kinds become ODF's milliseconds in UTC, which is how slices hold them.

    Raises:
        MalformedError: Not a Spark schema.
        UnsupportedError: A type without a counterpart; names the column.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("Spark schema", expected="JSON", found=text[:60]) from error
    struct = _type_of_spark(tree, "", 0)
    if not isinstance(struct, odf.DataTypeStruct):
        raise MalformedError("Spark schema", expected="a struct", found=text[:60])
    return odf.DataSchema(fields=struct.fields)


def _column(field: odf.DataField, path: str, separator: str) -> str:
    required = "" if isinstance(field.type, odf.DataTypeOption) else " NOT NULL"
    return f"{quote_spark_name(field.name)}{separator}{spark_type_of(field.type, column=path)}{required}"


def _rejection(data_type: odf.DataType, column: str, supported: str) -> UnsupportedError:
    what = f"type in Spark of column {column.lstrip('.')}" if column else "type in Spark"
    return UnsupportedError(what, found=describe_type(data_type), supported=supported)


def _type_of_spark(tree: Any, path: str, depth: int) -> odf.DataType:
    if depth > MAX_DEPTH:
        what = f"Spark type of column {path.lstrip('.').rstrip('[]')}"
        raise UnsupportedError(what, found=f"more than {MAX_DEPTH} levels")
    match tree:
        case str():
            return _simple_type_of_spark(tree, path)
        case {"type": "struct", "fields": [*fields]}:
            return odf.DataTypeStruct(fields=tuple(_field_of_spark(field, path, depth) for field in fields))
        case {"type": "array", "elementType": element, "containsNull": bool(nullable)}:
            return odf.DataTypeList(item_type=_optional(_type_of_spark(element, f"{path}[]", depth + 1), nullable))
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool(nullable)}:
            value_type = _optional(_type_of_spark(value, f"{path} (values)", depth + 1), nullable)
            key_type = _type_of_spark(key, f"{path} (keys)", depth + 1)
            return odf.DataTypeMap(key_type=key_type, value_type=value_type, keys_sorted=False)
    found = tree.get("type") if isinstance(tree, Mapping) else tree
    raise UnsupportedError(f"Spark type of column {path.lstrip('.')}", found=found)


def _simple_type_of_spark(name: str, path: str) -> odf.DataType:
    known = _OF_SPARK.get(name)
    if known is not None:
        return known
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return odf.DataTypeDecimal(precision=int(decimal.group(1)), scale=int(decimal.group(2)))
    supported = "a cast, as nulls alone have no type" if name == "void" else None
    raise UnsupportedError(f"Spark type of column {path.lstrip('.')}", found=name, supported=supported)


def _field_of_spark(tree: Any, path: str, depth: int) -> odf.DataField:
    match tree:
        case {"name": str(name), "type": data_type, "nullable": bool(nullable)}:
            return odf.DataField(
                name=name, type=_optional(_type_of_spark(data_type, f"{path}.{name}", depth + 1), nullable)
            )
    raise MalformedError("Spark schema", expected="fields with name, type and nullable", found=str(tree)[:60])


def _optional(data_type: odf.DataType, is_optional: bool) -> odf.DataType:
    return odf.DataTypeOption(inner=data_type) if is_optional else data_type
