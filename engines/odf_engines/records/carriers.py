"""Types that Spark lacks, and the types that carry their values through Spark.

Spark has no unsigned integers, half floats, times of day, durations or fixed-length binaries. Their values travel in
the next wider type that it has and come back, checked, when a slice is written. Timestamps always become milliseconds
in UTC, as the data format demands; what is finer is dropped towards the past.

Source: ODF "Data Slices" (time columns); spec/ingest.md ING-5.
"""

import pyarrow as pa
import pyarrow.compute as pc

from odf_protocol.errors import UnsupportedError

TIMESTAMP = pa.timestamp("ms", "UTC")

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
}

_SPARK_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
}

_TICKS_PER_MS = {"s": 0, "ms": 1, "us": 1000, "ns": 1_000_000}

_MAX_DIGITS = 76  # of a decimal of 256 bits
_MAX_DECIMAL_DIGITS = 38  # Spark's and decimal128's limit


def slice_type_of(found: pa.DataType) -> pa.DataType:
    """Give the type a column of type `found` has in a slice: plain layouts, timestamps in milliseconds and UTC.

    Raises:
        UnsupportedError: A type that no slice can hold.
    """
    types = pa.types
    if types.is_timestamp(found):
        return TIMESTAMP
    if types.is_string(found) or types.is_large_string(found) or types.is_string_view(found):
        return pa.string()
    if types.is_binary(found) or types.is_large_binary(found) or types.is_binary_view(found):
        return pa.binary()
    if types.is_date64(found):
        return pa.date32()
    if found == pa.time32("s"):
        return pa.time32("ms")  # Parquet has no times of day in seconds
    if types.is_dictionary(found):
        return slice_type_of(found.value_type)
    if types.is_decimal(found):
        if found.precision > _MAX_DECIMAL_DIGITS or found.scale < 0:
            raise UnsupportedError("decimal type", found=found, supported="up to 38 digits, scale from 0")
        return pa.decimal128(found.precision, found.scale)
    if (
        types.is_list(found)
        or types.is_large_list(found)
        or types.is_list_view(found)
        or types.is_large_list_view(found)
    ):
        return pa.list_(slice_field_of(found.value_field.with_name("item")))
    if types.is_fixed_size_list(found):
        return pa.list_(slice_field_of(found.value_field.with_name("item")), found.list_size)
    if types.is_struct(found):
        if not found.num_fields:
            raise UnsupportedError("column type", found="a struct without members")
        return pa.struct([slice_field_of(found.field(i)) for i in range(found.num_fields)])
    if types.is_fixed_size_binary(found) and not found.byte_width:
        raise UnsupportedError("column type", found="bytes of length 0")
    plain = types.is_integer(found) or types.is_floating(found) or types.is_boolean(found) or types.is_date32(found)
    if plain or types.is_time(found) or types.is_duration(found) or types.is_fixed_size_binary(found):
        return found
    raise UnsupportedError("column type", found=found)


def slice_field_of(field: pa.Field) -> pa.Field:
    """Give the field that a column has in a slice: see `slice_type_of`; metadata is dropped."""
    return pa.field(field.name, slice_type_of(field.type), field.nullable)


def carrier_of(target: pa.DataType) -> pa.DataType:
    """Give the type that carries values of the slice type `target` through Spark."""
    types = pa.types
    if target in _WIDER:
        return _WIDER[target]
    if types.is_time32(target):
        return pa.int32()
    if types.is_time64(target) or types.is_duration(target):
        return pa.int64()
    if types.is_fixed_size_binary(target):
        return pa.binary()
    if types.is_list(target) or types.is_fixed_size_list(target):
        return pa.list_(_carrier_field(target.value_field))
    if types.is_struct(target):
        return pa.struct([_carrier_field(field) for field in target])
    return target


def _carrier_field(field: pa.Field) -> pa.Field:
    # Below a null there are nulls, which files lack a way to write where the type forbids them.
    return field.with_type(carrier_of(field.type)).with_nullable(True)


def spark_name_of(carrier: pa.DataType) -> str:
    """Name a carrier type in Spark's SQL."""
    types = pa.types
    if types.is_decimal(carrier):
        return f"DECIMAL({carrier.precision},{carrier.scale})"
    if types.is_list(carrier):
        return f"ARRAY<{spark_name_of(carrier.value_type)}>"
    if types.is_struct(carrier):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {spark_name_of(field.type)}' for field in carrier)}>"
    return _SPARK_NAMES[carrier]


def quoted(name: str) -> str:
    """Quote an identifier for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def to_carrier(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Turn a column that is, or can be cast without loss to, `target` into its carrier type.

    Raises:
        pa.ArrowInvalid: A value does not fit `target`.
    """
    if pa.types.is_timestamp(column.type):
        column = _in_milliseconds(column)
    if column.type != target and column.type != carrier_of(target):
        column = _cast(column, target)
    return _recast(column, carrier_of(target))


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_integer(column.type) and types.is_decimal(target):
        # Arrow asks for as many digits as the whole numbers of the type may have, and not as these have.
        column = column.cast(pa.decimal256(_MAX_DIGITS, target.scale))
    found = column.cast(target)
    if types.is_floating(column.type) and types.is_floating(target):
        overflows = pc.and_(pc.is_inf(found), pc.is_finite(column))
        if pc.any(overflows).as_py():
            raise pa.ArrowInvalid(f"a number beyond those of {target}")
    return found


def from_carrier(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Turn a column of carrier type back into `target`.

    Raises:
        pa.ArrowInvalid: A value does not fit, such as a negative number in an unsigned column.
    """
    return _recast(column, target)


def _in_milliseconds(column: pa.Array) -> pa.Array:
    # With numbers only: Arrow's functions for times ask for a database of time zones, which a sandbox need not have.
    ticks, per_ms = column.cast(pa.int64()), _TICKS_PER_MS[column.type.unit]
    if per_ms < 1:
        return pc.multiply_checked(ticks, 1000).cast(TIMESTAMP)
    quotient = pc.divide(ticks, per_ms)
    goes_below = pc.less(ticks, pc.multiply(quotient, per_ms)).cast(pa.int64())
    return pc.subtract(quotient, goes_below).cast(TIMESTAMP)


def _recast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == target:
        return column
    types = pa.types
    if types.is_list(target) or types.is_fixed_size_list(target) or types.is_struct(target):
        return _recast_nested(column, target)
    return column.cast(target)


def _recast_nested(column: pa.Array, target: pa.DataType) -> pa.Array:
    nulls = column.is_null()
    if pa.types.is_struct(target):
        parts = [_recast(column.field(i), target.field(i).type) for i in range(target.num_fields)]
        parts = [part if field.nullable else _filled(part) for part, field in zip(parts, target, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=nulls)
    if pa.types.is_fixed_size_list(target):
        lists = _recast(column, pa.list_(target.value_field.with_nullable(True))).cast(
            pa.list_(target.value_field.with_nullable(True), target.list_size)
        )
        values = lists.values if target.value_field.nullable else _filled(lists.values)
        return pa.FixedSizeListArray.from_arrays(values, type=target, mask=nulls)
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    # Offsets and values of a sliced or null-holding list are only aligned after a copy.
    column = pa.concat_arrays([column.slice(0, 0), column])
    values = _recast(column.values, target.value_type)
    return pa.ListArray.from_arrays(column.offsets, values, type=target, mask=nulls if column.null_count else None)


def _filled(column: pa.Array) -> pa.Array:
    """Put some value where there is none: below a null, where nobody sees it and the type asks for one."""
    if not column.null_count:
        return column
    kind, types = column.type, pa.types
    if types.is_struct(kind):
        parts = [
            column.field(i) if kind.field(i).nullable else _filled(column.field(i)) for i in range(kind.num_fields)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    if types.is_list(kind):
        return pc.if_else(column.is_valid(), column, pa.scalar([], kind))
    if types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(_filled(column.values), type=kind)
    if types.is_string(kind) or types.is_binary(kind):
        return pc.fill_null(column, pa.scalar("" if types.is_string(kind) else b"", kind))
    if types.is_fixed_size_binary(kind):
        return pc.fill_null(column, pa.scalar(bytes(kind.byte_width), kind))
    whole = pa.int32() if types.is_time32(kind) or types.is_date32(kind) else pa.int64()
    zero = pa.array([False]) if types.is_boolean(kind) else pa.array([0], whole).cast(kind)
    return pc.fill_null(column, zero[0])


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only where it has several parts or none."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
