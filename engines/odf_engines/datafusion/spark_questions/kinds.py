"""Types of Spark's that both engines have, and how DataFusion is told to keep to one.

Source: clause QUERY-8 in ``spec/query.md``; Spark SQL reference "Data Types".
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.types as pt

from odf_engines.errors import UnsuitableQueryError
from odf_protocol.errors import UnsupportedError
from odf_protocol.schema_arrow import rows_schema_of

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_engines.contract import QueryTable

MOST_DIGITS: Final = 38  # Spark's DecimalType.MAX_PRECISION, and Arrow's Decimal128


@dataclass(frozen=True, slots=True)
class Kind:
    """A type.

    Attributes:
        name: Spark's name of it.
        arrow: As DataFusion's ``arrow_cast`` spells it.
        digits: Of a decimal, all; 0 of others.
        places: Of a decimal, behind the point.
    """

    name: str
    arrow: str
    digits: int = 0
    places: int = 0

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number of fixed size."""
        return self in INTEGERS

    @property
    def is_floating(self) -> bool:
        """Whether it has NaN and two zeros, which the engines tell apart differently."""
        return self in (FLOAT, DOUBLE)


BOOLEAN: Final = Kind("boolean", "Boolean")
INT: Final = Kind("int", "Int32")
BIGINT: Final = Kind("bigint", "Int64")
INTEGERS: Final = (Kind("tinyint", "Int8"), Kind("smallint", "Int16"), INT, BIGINT)
FLOAT: Final = Kind("float", "Float32")
DOUBLE: Final = Kind("double", "Float64")
STRING: Final = Kind("string", "Utf8")
BINARY: Final = Kind("binary", "Binary")
DATE: Final = Kind("date", "Date32")
TIMESTAMP: Final = Kind("timestamp", 'Timestamp(Microsecond, Some("UTC"))')

EXACT_WHOLE: Final = 20
"""Digits of a decimal that holds any whole number of eight bytes."""


def decimal(digits: int, places: int) -> Kind:
    """Return a decimal type.

    Raises:
        UnsuitableQueryError: It has too many digits.
    """
    if digits > MOST_DIGITS:
        raise UnsuitableQueryError(f"a decimal of {digits} digits")
    return Kind(f"decimal({digits},{places})", f"Decimal128({digits}, {places})", digits, places)


def wider_integer(first: Kind, second: Kind) -> Kind:
    """Return the type that Spark gives to two whole numbers together."""
    return max(first, second, key=INTEGERS.index)


def columns_of(table: "QueryTable") -> dict[str, Kind | None]:
    """Return the types of a table's columns; None: one that the engines do not share.

    Raises:
        UnsuitableQueryError: A column has a type that Arrow does not know.
    """
    try:
        schema = rows_schema_of(table.schema)
    except UnsupportedError as error:
        raise UnsuitableQueryError(str(error)) from error
    return {field.name: _kind_of(field.type) for field in schema}


def _kind_of(kind: "pa.DataType") -> Kind | None:

    if pt.is_decimal128(kind):
        return decimal(kind.precision, kind.scale) if 0 <= kind.scale <= kind.precision else None
    if pt.is_timestamp(kind):
        return TIMESTAMP if kind.tz == "UTC" and kind.unit in {"ms", "us"} else None
    return _PLAIN.get(str(kind))


_PLAIN: Final = {
    "bool": BOOLEAN,
    "int8": INTEGERS[0],
    "int16": INTEGERS[1],
    "int32": INT,
    "int64": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "large_string": STRING,
    "binary": BINARY,
    "large_binary": BINARY,
    "date32[day]": DATE,
}
