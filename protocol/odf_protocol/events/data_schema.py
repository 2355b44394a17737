"""Schema of a dataset, in ODF's own types.

Source: ODF "DataSchema" and "DataType" (RFC 16).
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.enums import TimeUnit
from odf_protocol.events.declaration import I32, U32, U64, DefaultsTo, Union
from odf_protocol.events.extra_attributes import ExtraAttributes

_Unit = Annotated[TimeUnit | None, DefaultsTo(TimeUnit.MILLISECOND)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeBinary:
    """Bytes, all of ``fixed_length`` if that is given."""

    fixed_length: U64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeBool:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeDate:
    """A day of the calendar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeDecimal:
    """A number of ``precision`` decimal digits, ``scale`` of them after the point."""

    precision: U32
    scale: I32


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeDuration:
    """A length of time."""

    unit: _Unit = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeFloat16:
    """IEEE 754 half precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeFloat32:
    """IEEE 754 single precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeFloat64:
    """IEEE 754 double precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt8:
    """Signed, 8 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt16:
    """Signed, 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt32:
    """Signed, 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt64:
    """Signed, 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt8:
    """Unsigned, 8 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt16:
    """Unsigned, 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt32:
    """Unsigned, 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt64:
    """Unsigned, 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeList:
    """A list of one type of item, ``fixed_length`` items each if that is given."""

    item_type: "DataType"
    fixed_length: U64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeMap:
    """Keys and values."""

    key_type: "DataType"
    value_type: "DataType"
    keys_sorted: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeNull:
    """Nothing but nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeOption:
    """``inner`` or null: every type not wrapped in an option is required."""

    inner: "DataType"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeStruct:
    """Named fields."""

    fields: tuple["DataField", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeTime:
    """A time of the day."""

    unit: _Unit = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeTimestamp:
    """A point in time; absent ``timezone`` means UTC, there are no naive timestamps."""

    unit: _Unit = None
    timezone: Annotated[str | None, DefaultsTo("UTC")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeString:
    """Text."""


DataType = Annotated[
    DataTypeBinary
    | DataTypeBool
    | DataTypeDate
    | DataTypeDecimal
    | DataTypeDuration
    | DataTypeFloat16
    | DataTypeFloat32
    | DataTypeFloat64
    | DataTypeInt8
    | DataTypeInt16
    | DataTypeInt32
    | DataTypeInt64
    | DataTypeUInt8
    | DataTypeUInt16
    | DataTypeUInt32
    | DataTypeUInt64
    | DataTypeList
    | DataTypeMap
    | DataTypeNull
    | DataTypeOption
    | DataTypeStruct
    | DataTypeTime
    | DataTypeTimestamp
    | DataTypeString,
    Union("DataType"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataField:
    """A column, or a field of a struct."""

    name: str
    type: DataType
    extra: ExtraAttributes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSchema:
    """Columns in their order."""

    fields: tuple[DataField, ...]
    extra: ExtraAttributes | None = None
