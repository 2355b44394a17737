"""What the v1 hash says about a table's columns: names and logical types, whatever the layout in memory or on disk.

A *logical type* leaves out what does not change a value: 32- or 64-bit offsets, views, dictionaries, fixed sizes, the
width of a decimal's storage, extension labels, nullability. A table's columns form a tree: structs have their fields as
children. Walked depth-first it gives the *columns* that are hashed; a struct is a column too, one of rows that are
present or not.

Source: clauses LH1-3 to LH1-5 in ``spec/extensions/logical-hash-v1.md``.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from odf_protocol.errors import MalformedError, UnsupportedError

_NULL, _BOOL, _INT, _FLOAT, _UTF8, _BINARY, _DECIMAL, _DATE, _TIME, _TIMESTAMP, _DURATION, _LIST, _STRUCT = range(13)
_UNITS: Final = ("s", "ms", "us", "ns")
_MAX_DEPTH: Final = 64  # guess: ODF schemas nest a few levels; a hostile schema must not exhaust the stack
_MAX_DECIMAL128_DIGITS: Final = 38  # Arrow: digits that fit 128 bits
_MAX_DECIMAL256_DIGITS: Final = 76  # Arrow: digits that fit 256 bits


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the hash: a leaf field, or a struct as such.

    Attributes:
        path: Index of the top-level field, then of the child in each struct on the way.
        name: Dotted names along the path.
        type: Logical type.
    """

    path: tuple[int, ...]
    name: str
    type: pa.DataType


def logical_type(data_type: pa.DataType, column: str, depth: int = 0) -> pa.DataType:
    """Return the one Arrow type that stands for all layouts of the same values.

    Raises:
        UnsupportedError: A type that has no values to speak of in ODF (unions, intervals, ...).
    """
    if depth > _MAX_DEPTH:
        raise UnsupportedError(f"nesting in column {column[:80]!r}", supported=f"{_MAX_DEPTH} levels")
    if isinstance(data_type, pa.BaseExtensionType):
        return logical_type(data_type.storage_type, column, depth)
    if pat.is_dictionary(data_type):
        return logical_type(data_type.value_type, column, depth)
    if pat.is_string(data_type) or pat.is_large_string(data_type) or pat.is_string_view(data_type):
        return pa.large_string()
    if pat.is_decimal(data_type):
        wide = data_type.precision > _MAX_DECIMAL128_DIGITS
        return (pa.decimal256 if wide else pa.decimal128)(data_type.precision, data_type.scale)
    if (
        pat.is_binary(data_type)
        or pat.is_large_binary(data_type)
        or pat.is_binary_view(data_type)
        or pat.is_fixed_size_binary(data_type)
    ):
        return pa.large_binary()
    if pat.is_date(data_type):
        return pa.date32()
    if pat.is_map(data_type):
        key = logical_type(data_type.key_type, f"{column}.key", depth + 1)
        value = logical_type(data_type.item_type, f"{column}.value", depth + 1)
        return pa.large_list(pa.struct([("key", key), ("value", value)]))
    if pat.is_list(data_type) or pat.is_large_list(data_type) or pat.is_fixed_size_list(data_type):
        return pa.large_list(logical_type(data_type.value_type, f"{column}[]", depth + 1))
    if pat.is_struct(data_type):
        children = [(f.name, logical_type(f.type, f"{column}.{f.name}", depth + 1)) for f in data_type]
        return pa.struct(children)
    if (
        pat.is_null(data_type)
        or pat.is_boolean(data_type)
        or pat.is_integer(data_type)
        or pat.is_floating(data_type)
        or pat.is_time(data_type)
        or pat.is_timestamp(data_type)
        or pat.is_duration(data_type)
    ):
        return data_type
    raise UnsupportedError(f"type for the logical hash v1 in column {column!r}", found=data_type)


def iter_columns(schema: pa.Schema) -> Iterator[Column]:
    """Walk the columns of a schema of logical types, each struct before its fields."""
    for index, field in enumerate(schema):
        yield from _iter_field_columns(field, (index,), field.name)


def encode_schema(schema: pa.Schema) -> bytes:
    """Return the names and types of all fields, framed (LH1-4).

    Raises:
        UnsupportedError: A type that cannot be hashed; the message names the column.
    """
    return _encode_fields([(field.name, logical_type(field.type, field.name)) for field in schema])


def decode_schema(raw: bytes) -> pa.Schema:
    """Read ``encode_schema``'s bytes, untrusted; the result has logical types.

    Raises:
        MalformedError: Not what ``encode_schema`` writes.
    """
    reader = _Reader(raw)
    fields = reader.read_fields(0)
    if reader.position != len(raw):
        raise MalformedError("v1 schema", where=reader.position, expected="the end", found="more bytes")
    schema = pa.schema(fields)
    if encode_schema(schema) != raw:  # such as a time zone that is there and empty, which Arrow does not know
        raise MalformedError("v1 schema", expected="the one encoding of its columns", found="another")
    return schema


def _iter_field_columns(field: pa.Field, path: tuple[int, ...], name: str) -> Iterator[Column]:
    yield Column(path, name, field.type)
    if pat.is_struct(field.type):
        for index, child in enumerate(field.type):
            yield from _iter_field_columns(child, (*path, index), f"{name}.{child.name}")


def _encode_fields(fields: list[tuple[str, pa.DataType]]) -> bytes:
    parts = [struct.pack("<I", len(fields))]
    for name, data_type in fields:
        text = name.encode()
        parts += [struct.pack("<I", len(text)), text, _encode_type(data_type)]
    return b"".join(parts)


def _encode_type(data_type: pa.DataType) -> bytes:
    if pat.is_null(data_type):
        return bytes([_NULL])
    if pat.is_boolean(data_type):
        return bytes([_BOOL])
    if pat.is_integer(data_type):
        return bytes([_INT, data_type.bit_width, pat.is_signed_integer(data_type)])
    if pat.is_floating(data_type):
        return bytes([_FLOAT, data_type.bit_width])
    if pat.is_large_string(data_type):
        return bytes([_UTF8])
    if pat.is_large_binary(data_type):
        return bytes([_BINARY])
    if pat.is_decimal(data_type):
        return struct.pack("<BBb", _DECIMAL, data_type.precision, data_type.scale)
    if pat.is_date(data_type):
        return bytes([_DATE])
    if pat.is_time(data_type):
        return bytes([_TIME, _UNITS.index(data_type.unit)])
    if pat.is_timestamp(data_type):
        head = bytes([_TIMESTAMP, _UNITS.index(data_type.unit), data_type.tz is not None])
        zone = (data_type.tz or "").encode()
        return head if data_type.tz is None else head + struct.pack("<I", len(zone)) + zone
    if pat.is_duration(data_type):
        return bytes([_DURATION, _UNITS.index(data_type.unit)])
    if pat.is_large_list(data_type):
        return bytes([_LIST]) + _encode_type(data_type.value_type)
    assert pat.is_struct(data_type), data_type
    return bytes([_STRUCT]) + _encode_fields([(field.name, field.type) for field in data_type])


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.position = 0

    def read_fields(self, depth: int) -> list[tuple[str, pa.DataType]]:
        fields = []
        for _ in range(self._read_count()):
            name = self._read_text()
            fields.append((name, self._read_type(depth)))
        return fields

    def _take(self, size: int) -> bytes:
        part = self._raw[self.position : self.position + size]
        if len(part) != size:
            raise MalformedError("v1 schema", where=self.position, expected=f"{size} bytes", found=len(part))
        self.position += size
        return part

    def _read_count(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _read_text(self) -> str:
        where = self.position
        try:
            return self._take(self._read_count()).decode()
        except UnicodeDecodeError as error:
            raise MalformedError("v1 schema", where=where, expected="UTF-8", found=error) from error

    def _read_choice(self, what: str, allowed: range | tuple[int, ...]) -> int:
        where = self.position
        value = self._take(1)[0]
        if value not in allowed:
            raise MalformedError("v1 schema", where=where, expected=what, found=value)
        return value

    def _read_unit(self) -> str:
        return _UNITS[self._read_choice("a unit of time", range(len(_UNITS)))]

    def _read_type(self, depth: int) -> pa.DataType:
        if depth > _MAX_DEPTH:
            raise MalformedError("v1 schema", where=self.position, expected=f"{_MAX_DEPTH} levels", found="more")
        match self._read_choice("a type", range(_STRUCT + 1)):
            case 0:
                return pa.null()
            case 1:
                return pa.bool_()
            case 2:
                bits = self._read_choice("bits of an integer", (8, 16, 32, 64))
                signed = self._read_choice("0 or 1", (0, 1))
                return pa.type_for_alias(f"{'' if signed else 'u'}int{bits}")
            case 3:
                return pa.type_for_alias(f"float{self._read_choice('bits of a float', (16, 32, 64))}")
            case 4:
                return pa.large_string()
            case 5:
                return pa.large_binary()
            case 6:
                precision = self._read_choice("digits", range(1, _MAX_DECIMAL256_DIGITS + 1))
                scale = int.from_bytes(self._take(1), "little", signed=True)
                return (pa.decimal256 if precision > _MAX_DECIMAL128_DIGITS else pa.decimal128)(precision, scale)
            case 7:
                return pa.date32()
            case 8:
                unit = self._read_unit()
                return pa.time32(unit) if unit in {"s", "ms"} else pa.time64(unit)
            case 9:
                unit = self._read_unit()
                return pa.timestamp(unit, self._read_text() if self._read_choice("0 or 1", (0, 1)) else None)
            case 10:
                return pa.duration(self._read_unit())
            case 11:
                return pa.large_list(self._read_type(depth + 1))
            case _:
                return pa.struct(self.read_fields(depth + 1))
