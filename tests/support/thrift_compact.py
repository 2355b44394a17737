"""Thrift's compact protocol, as far as Parquet's footers and page headers need it: read, change, write again.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_NUMBERS = (I16, I32, I64)


@dataclass
class Field:
    """A value with its type on the wire."""

    kind: int
    value: Any


@dataclass
class Items:
    """A list: the type of its items, and these."""

    kind: int
    values: list[Any] = field(default_factory=list)


class Struct(dict[int, Field]):
    """Fields by their number, in the order in which they stand."""

    def get_value(self, *path: int) -> Any:
        """Follow numbers of fields into structs; None where one is missing."""
        found: Any = self
        for number in path:
            if not isinstance(found, Struct) or number not in found:
                return None
            found = found[number].value
        return found

    def put(self, number: int, kind: int, value: Any) -> None:
        """Set a field, new or not."""
        self[number] = Field(kind, value)


class Reader:
    """Reads from a position on, and knows where it stands after it."""

    def __init__(self, raw: bytes, position: int = 0) -> None:
        self.raw = raw
        self.position = position

    def byte(self) -> int:
        self.position += 1
        return self.raw[self.position - 1]

    def varint(self) -> int:
        shift = value = 0
        while True:
            part = self.byte()
            value |= (part & 0x7F) << shift
            if part < 0x80:
                return value
            shift += 7

    def zigzag(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def take(self, count: int) -> bytes:
        self.position += count
        return self.raw[self.position - count : self.position]

    def struct(self) -> Struct:
        found, last = Struct(), 0
        while head := self.byte():
            kind, delta = head & 0x0F, head >> 4
            last = last + delta if delta else self.zigzag()
            found[last] = Field(kind, self.value(kind))
        return found

    def value(self, kind: int, *, in_list: bool = False) -> Any:
        if kind in (TRUE, FALSE):
            return self.byte() == TRUE if in_list else kind == TRUE
        if kind == BYTE:
            return self.byte()
        if kind in _NUMBERS:
            return self.zigzag()
        if kind == DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (LIST, SET):
            head = self.byte()
            count = head >> 4 if head >> 4 != 15 else self.varint()
            return Items(head & 0x0F, [self.value(head & 0x0F, in_list=True) for _ in range(count)])
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"no such type: {kind}")


def write_struct(value: Struct, repeated: Sequence[tuple[int, Field]] = ()) -> bytes:
    """Write a struct as the protocol has it; ``repeated`` fields follow, whose numbers it may have already."""
    again = (
        bytes([item.kind]) + _varint(_zigzag(number)) + b"".join(_iter_value(item.kind, item.value))
        for number, item in repeated
    )
    return b"".join(_iter_struct(value))[:-1] + b"".join(again) + b"\0"


def _iter_struct(value: Struct) -> Iterator[bytes]:
    last = 0
    for number, item in sorted(value.items()):
        kind = item.kind
        if kind in (TRUE, FALSE):
            kind = TRUE if item.value else FALSE
        delta = number - last
        yield bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + _varint(_zigzag(number))
        last = number
        if kind not in (TRUE, FALSE):
            yield from _iter_value(kind, item.value)
    yield b"\0"


def _iter_value(kind: int, value: Any) -> Iterator[bytes]:
    if kind in (TRUE, FALSE):
        yield bytes([TRUE if value else FALSE])
    elif kind == BYTE:
        yield bytes([value & 0xFF])
    elif kind in _NUMBERS:
        yield _varint(_zigzag(value))
    elif kind == DOUBLE:
        yield struct.pack("<d", value)
    elif kind == BINARY:
        yield _varint(len(value)) + value
    elif kind in (LIST, SET):
        count = len(value.values)
        yield bytes([count << 4 | value.kind]) if count < 15 else bytes([0xF0 | value.kind]) + _varint(count)
        for item in value.values:
            yield from _iter_value(value.kind, item)
    elif kind == STRUCT:
        yield from _iter_struct(value)
    else:
        raise ValueError(f"no such type: {kind}")


def _zigzag(number: int) -> int:
    return ((number << 1) ^ (number >> 63)) & (2**64 - 1)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
