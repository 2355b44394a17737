"""What a column's type contributes to ``arrow0-sha3-256``, and which types it cannot hash.

Source: ODF "Logical Hashes" (arrow-digest, type framing).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from odf_protocol.errors import UnsupportedError

_BINARY: Final = struct.pack("<H", 3)
_UTF8: Final = struct.pack("<H", 4)
_BOOLEAN: Final = struct.pack("<H", 5)
_UNITS: Final = {"s": 0, "ms": 1, "us": 2, "ns": 3}
_MAX_DEPTH: Final = 64  # guess: ODF schemas nest a few levels; a hostile schema must not exhaust the stack


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that is hashed: any field that is not a struct.

    Attributes:
        path: Index of the column, then of the child in each struct on the way.
        name: Dotted path of names, for messages.
        type: Type of the leaf, extension types replaced by their storage.
        nullable_nodes: How many fields on the path, the leaf included, may be null.
    """

    path: tuple[int, ...]
    name: str
    type: pa.DataType
    nullable_nodes: int


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type the values are stored as: extension types are a label that the hash does not see."""
    while isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    return data_type


def fixed_width_bytes(data_type: pa.DataType) -> int | None:
    """Return the size of one element that is hashed as it lies in memory, None for every other type."""
    if (
        pat.is_integer(data_type)
        or pat.is_floating(data_type)
        or pat.is_decimal(data_type)
        or pat.is_date(data_type)
        or pat.is_time(data_type)
        or pat.is_timestamp(data_type)
    ):
        return int(data_type.bit_width) // 8
    return None


def iter_leaves(schema: pa.Schema) -> Iterator[Leaf]:
    """Walk the columns depth-first and give the fields that hold values.

    Raises:
        UnsupportedError: Structs nested deeper than any sane schema.
    """
    for index, field in enumerate(schema):
        yield from _iter_field_leaves(field, (index,), field.name, 0)


def _iter_field_leaves(field: pa.Field, path: tuple[int, ...], name: str, nullable_nodes: int) -> Iterator[Leaf]:
    _bound_depth(len(path), name)
    data_type = storage_type(field.type)
    nullable_nodes += field.nullable
    if not pat.is_struct(data_type):
        yield Leaf(path, name, data_type, nullable_nodes)
        return
    for index, child in enumerate(data_type):
        yield from _iter_field_leaves(child, (*path, index), f"{name}.{child.name}", nullable_nodes)


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return the names and levels of all fields, structs included, as the main hash takes them."""
    parts: list[bytes] = []

    def walk(field: pa.Field, level: int) -> None:
        name = field.name.encode()
        parts.append(struct.pack("<Q", len(name)) + name + struct.pack("<Q", level))
        data_type = storage_type(field.type)
        if pat.is_struct(data_type):
            for child in data_type:
                walk(child, level + 1)

    for field in schema:
        walk(field, 0)
    return b"".join(parts)


def type_bytes(data_type: pa.DataType, column: str, depth: int = 0) -> bytes:
    """Return what a column's hash starts with.

    Args:
        data_type: Type of a leaf.
        column: Its name, for the error.
        depth: How many lists are around it.

    Raises:
        UnsupportedError: The reference implementation has no encoding for the type.
    """
    _bound_depth(depth, column)
    data_type = storage_type(data_type)
    if pat.is_integer(data_type):
        return struct.pack("<HBQ", 1, pat.is_signed_integer(data_type), data_type.bit_width)
    if pat.is_floating(data_type):
        return struct.pack("<HQ", 2, data_type.bit_width)
    if (
        pat.is_binary(data_type)
        or pat.is_large_binary(data_type)
        or pat.is_binary_view(data_type)
        or pat.is_fixed_size_binary(data_type)
    ):
        return _BINARY
    if pat.is_string(data_type) or pat.is_large_string(data_type) or pat.is_string_view(data_type):
        return _UTF8
    if pat.is_boolean(data_type):
        return _BOOLEAN
    if pat.is_decimal(data_type):
        # The scale is a signed byte that the reference widens with its sign.
        return struct.pack("<HQQq", 6, data_type.bit_width, data_type.precision, data_type.scale)
    if pat.is_date(data_type):
        return struct.pack("<HQH", 7, data_type.bit_width, pat.is_date64(data_type))
    if pat.is_time(data_type):
        return struct.pack("<HQH", 8, data_type.bit_width, _UNITS[data_type.unit])
    if pat.is_timestamp(data_type):
        zone = b"\x00"
        if data_type.tz is not None:
            text = data_type.tz.encode()
            zone = struct.pack("<Q", len(text)) + text
        return struct.pack("<HH", 9, _UNITS[data_type.unit]) + zone
    if pat.is_list(data_type) or pat.is_large_list(data_type) or pat.is_fixed_size_list(data_type):
        return struct.pack("<H", 11) + type_bytes(data_type.value_type, f"{column}[]", depth + 1)
    raise UnsupportedError(f"type for arrow0-sha3-256 in column {column!r}", found=data_type)


def _bound_depth(depth: int, column: str) -> None:
    if depth > _MAX_DEPTH:
        raise UnsupportedError(
            f"nesting in column {column[:80]!r}", found=f"{depth} levels", supported=f"{_MAX_DEPTH} levels"
        )
