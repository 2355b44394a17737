"""Encodes declared tables, byte for byte as the reference implementation does.

Order fixes the bytes. For every table: first everything that lies outside of it (strings, vectors, sub-tables), in the
order of fields and depth first; then its slots, in the order of fields. Nothing is shared but equal vtables.

Source: ODF metadata block serialization; FlatBuffers internals (builder).
"""

import struct
from typing import Any, assert_never

from flatbuffers import Builder, number_types

from odf_protocol.enums import Scalar
from odf_protocol.events.declaration import (
    BytesKind,
    EnumKind,
    Field,
    Kind,
    ScalarKind,
    TableKind,
    TextKind,
    TimestampKind,
    UnionKind,
    VectorKind,
    declaration_of,
)
from odf_protocol.timestamp import Timestamp

_TIMESTAMP = struct.Struct("<iHxxII")
_INITIAL_SIZE_BYTES = 512

_FLAGS = {
    "bool": number_types.BoolFlags,
    "int16": number_types.Int16Flags,
    "int32": number_types.Int32Flags,
    "int64": number_types.Int64Flags,
    "uint32": number_types.Uint32Flags,
    "uint64": number_types.Uint64Flags,
}


def encode_root(table: Any, timestamp_alignment: int = 4) -> bytes:
    """Encode a declared table as a whole buffer, without identifier and size prefix.

    Args:
        table: An object of a class that ``events.declaration`` can read.
        timestamp_alignment: In bytes; 4, or 1 as version 2 of blocks has it.

    Raises:
        ValueError: A number does not fit its field, or a union holds what is not a member.
    """
    builder = Builder(_INITIAL_SIZE_BYTES)
    builder.Finish(_Encoder(builder, timestamp_alignment).table(table))
    return bytes(builder.Output())


class _Encoder:
    """Writes tables into one builder; returned numbers are the builder's offsets."""

    def __init__(self, builder: Builder, timestamp_alignment: int) -> None:
        self._builder = builder
        self._timestamp_alignment = timestamp_alignment

    def table(self, table: Any) -> int:
        declaration = declaration_of(type(table))
        outside = {
            field.slot: self._outside(field.kind, value)
            for field in declaration.fields
            if (value := getattr(table, field.name)) is not None and not _is_inline(field.kind)
        }
        self._builder.StartObject(declaration.slot_count)
        for field in declaration.fields:
            value = getattr(table, field.name)
            if value is not None:
                self._add_slot(field, value, outside.get(field.slot, 0))
            elif not field.is_optional:
                raise ValueError(f"{declaration.name}.{field.name} is missing")
        return int(self._builder.EndObject())

    def _outside(self, kind: Kind, value: Any) -> int:
        """Write what lies outside of the table that refers to it."""
        match kind:
            case TextKind():
                return int(self._builder.CreateString(value))
            case BytesKind():
                return int(self._builder.CreateByteVector(value if isinstance(value, bytes) else value.to_bytes()))
            case TableKind() | UnionKind():
                return self.table(value)
            case VectorKind(UnionKind() as union):
                return self._vector([self._wrapper(union, member) for member in value])
            case VectorKind(element):
                return self._vector([self._outside(element, item) for item in value])
            case ScalarKind() | EnumKind() | TimestampKind():
                raise TypeError(f"inline: {kind}")
        assert_never(kind)

    def _vector(self, offsets: list[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _wrapper(self, union: UnionKind, member: Any) -> int:
        """Vectors of unions hold a table per element, of tag and value."""
        offset = self.table(member)
        self._builder.StartObject(2)
        self._builder.PrependUint8Slot(0, union.tag_of(type(member)), 0)
        self._builder.PrependUOffsetTRelativeSlot(1, offset, 0)
        return int(self._builder.EndObject())

    def _add_slot(self, field: Field, value: Any, outside: int) -> None:
        match field.kind:
            case ScalarKind(scalar):
                self._add_scalar(field, scalar, int(value))
            case EnumKind():
                self._add_scalar(field, field.kind.scalar, value.value)
            case TimestampKind():
                self._builder.PrependStructSlot(field.slot, self._timestamp(value), 0)
            case UnionKind():
                self._builder.PrependUint8Slot(field.slot, field.kind.tag_of(type(value)), 0)
                self._builder.PrependUOffsetTRelativeSlot(field.slot + 1, outside, 0)
            case _:
                self._builder.PrependUOffsetTRelativeSlot(field.slot, outside, 0)

    def _add_scalar(self, field: Field, scalar: Scalar, value: int) -> None:
        if not scalar.minimum <= value <= scalar.maximum:
            raise ValueError(f"{field.name}: {value} does not fit {scalar.name}")
        # A plain 0 is left out; an optional 0 is written, because absent means None.
        self._builder.PrependSlot(_FLAGS[scalar.name], field.slot, value, None if field.is_optional else 0)

    def _timestamp(self, value: Timestamp) -> int:
        """Write the struct by hand: the builder's own way cannot align it to 1 byte, as version 2 needs."""
        builder = self._builder
        builder.Prep(self._timestamp_alignment, _TIMESTAMP.size)
        builder.head -= _TIMESTAMP.size
        _TIMESTAMP.pack_into(builder.Bytes, builder.head, *value.to_day_of_year())
        return int(builder.Offset())


def _is_inline(kind: Kind) -> bool:
    return isinstance(kind, ScalarKind | EnumKind | TimestampKind)
