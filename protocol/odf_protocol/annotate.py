"""What each byte of a block means: an annotated dump for people who look into bytes.

The walk follows the same offsets as decoding, by the same declarations, but keeps where it has been. It never fails:
where bytes do not follow the format, the dump says so at that place, shows what was reached before, and calls the rest
unvisited. It judges nothing; a block that dumps well may still be rejected by the decoder.

    20  0a000000                          Manifest: its vtable is 10 bytes before
    24  14000000                          Manifest.content → bytes at 44
    28  03000000                          Manifest.version: 3

Source: ODF metadata block serialization; FlatBuffers internals.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.events.declaration import (
    BytesKind,
    Declaration,
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
from odf_protocol.wire.envelope import Manifest, MetadataBlock
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES, MAX_DEPTH, MAX_TABLES

#: Bytes shown per line; longer ranges are continued on lines of their own.
SHOWN_BYTES: Final = 16

#: Characters of a text that a meaning repeats. # guess
SHOWN_CHARACTERS: Final = 60

#: Most values of one block that are noted: tables may overlap, so bytes do not bound them. # guess: a schema of 10,000
#: columns has some 200,000
MAX_NOTES: Final = 300_000

#: Most meanings of one range: equal vtables are shared by all their tables. # guess
MAX_MEANINGS: Final = 4

_OFFSET_BYTES: Final = 4
_TIMESTAMP: Final = struct.Struct("<iH2sII")


@dataclass(frozen=True, slots=True)
class Note:
    """A range of bytes and its meaning.

    Attributes:
        position: Of the first byte in the block.
        data: The bytes; empty where the note is about a fault.
        meaning: One line.
    """

    position: int
    data: bytes = field(repr=False)
    meaning: str

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Write the note as lines of position, bytes in hex and meaning; long ranges go on below."""
        yield f"{self.position:6}  {_hex(self.data[:SHOWN_BYTES])}  {self.meaning}"
        for start in range(SHOWN_BYTES, len(self.data), SHOWN_BYTES):
            yield f"{self.position + start:6}  {_hex(self.data[start : start + SHOWN_BYTES])}".rstrip()


def annotate_block(raw: bytes) -> tuple[Note, ...]:
    """Explain every byte of a block, in the order of the bytes.

    Args:
        raw: Untrusted bytes, as given; nothing is hashed or believed.

    Returns:
        Notes that cover all bytes once, and a note without bytes at each fault.
    """
    walk = _Walk(raw[:MAX_BLOCK_SIZE_BYTES])
    walk.run(declaration_of(Manifest), 0, len(walk.data))
    notes = list(walk.notes())
    if len(raw) > MAX_BLOCK_SIZE_BYTES:
        excess = len(raw) - MAX_BLOCK_SIZE_BYTES
        notes.append(Note(MAX_BLOCK_SIZE_BYTES, b"", f"{excess} bytes more than a block may have, not shown"))
    return tuple(notes)


def _hex(data: bytes) -> str:
    return data.hex().ljust(2 * SHOWN_BYTES)


@dataclass(slots=True)
class _Range:
    size_bytes: int
    meanings: list[str]


class _Walk:
    """Notes by position. ``_base`` is where the buffer being read starts, ``_end`` where it ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._ranges: dict[int, _Range] = {}
        self._faults: list[Note] = []
        self._tables_left = MAX_TABLES
        self._visited: set[tuple[str, int]] = set()
        self._notes_left = MAX_NOTES
        self._base = 0
        self._end = len(data)

    def run(self, root: Declaration, base: int, end: int) -> None:
        """Walk one buffer; a fault ends the walk of this buffer only."""
        outer, (self._base, self._end) = (self._base, self._end), (base, end)
        try:
            self._table(root, self._follow(base, "root", root.name), 1)
        except OdfError as error:
            place = error.where if isinstance(error, MalformedError) and isinstance(error.where, int) else base
            self._faults.append(Note(min(place, len(self.data)), b"", str(error)))
        finally:
            self._base, self._end = outer

    def notes(self) -> Iterator[Note]:
        """Notes in order, with the bytes between them."""
        position = 0
        faults = sorted(self._faults, key=lambda note: note.position)
        for start in sorted(self._ranges):
            while faults and faults[0].position < start:
                yield faults.pop(0)
            found = self._ranges[start]
            if start > position:
                yield self._gap(position, start)
            # Ranges that share bytes, which no honest writer makes, are shown from where the last one ended.
            end = start + found.size_bytes
            meaning = "; ".join(found.meanings) + (" (shares bytes with the one above)" if start < position else "")
            yield Note(start, self.data[max(start, position) : end], meaning)
            position = max(position, end)
        if position < len(self.data):
            yield self._gap(position, len(self.data))
        yield from faults

    def _gap(self, start: int, end: int) -> Note:
        data = self.data[start:end]
        return Note(start, data, "not visited" if any(data) else "padding")

    def _add(self, position: int, size_bytes: int, meaning: str) -> None:
        self._notes_left -= 1
        if self._notes_left < 0:
            raise MalformedError("buffer", where=position, expected=f"at most {MAX_NOTES} values", found="more")
        found = self._ranges.setdefault(position, _Range(size_bytes, []))
        found.size_bytes = max(found.size_bytes, size_bytes)
        if len(found.meanings) < MAX_MEANINGS and meaning not in found.meanings:
            found.meanings.append(meaning)

    def _table(self, declaration: Declaration, position: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise MalformedError(declaration.name, where=position, expected=f"at most {MAX_DEPTH} levels", found="more")
        self._tables_left -= 1
        if self._tables_left < 0:
            raise MalformedError("buffer", where=position, expected=f"at most {MAX_TABLES} tables", found="more")
        # A part that many share is explained once: unfolded, a small buffer could have far too many tables.
        if (declaration.name, position) in self._visited:
            return
        self._visited.add((declaration.name, position))
        slots = self._vtable(declaration, position)
        for field_ in declaration.fields:
            self._field(declaration, field_, slots, position, depth)

    def _vtable(self, declaration: Declaration, position: int) -> list[int]:
        """Note the vtable and the offset to it; return where fields lie, 0 if absent."""
        vtable = position - self._number("<i", position, declaration.name)
        size_bytes = self._number("<H", vtable, f"vtable of {declaration.name}")
        table_bytes = self._number("<H", vtable + 2, f"vtable of {declaration.name}")
        if size_bytes < 4 or size_bytes % 2:
            expected = "an even size from 4"
            raise MalformedError(f"vtable of {declaration.name}", where=vtable, expected=expected, found=size_bytes)
        slots = [self._number("<H", vtable + at, f"vtable of {declaration.name}") for at in range(4, size_bytes, 2)]
        names = _slot_names(declaration)
        named = [
            f"{names[slot] if slot < len(names) else f'unknown field {slot}'} at {offset}"
            for slot, offset in enumerate(slots)
            if offset
        ]
        fields = ", ".join(named) if named else "no fields"
        self._add(
            vtable, size_bytes, f"vtable of {declaration.name}: {size_bytes} bytes, table {table_bytes}: {fields}"
        )
        where = f"{position - vtable} bytes before" if vtable <= position else f"{vtable - position} bytes after"
        self._add(position, _OFFSET_BYTES, f"{declaration.name}: its vtable is {where}")
        return slots + [0] * (declaration.slot_count - len(slots))

    def _field(self, declaration: Declaration, field_: Field, slots: list[int], table: int, depth: int) -> None:
        name = f"{declaration.name}.{field_.name}"
        slot = slots[field_.slot]
        if not slot:
            return
        if isinstance(field_.kind, UnionKind):
            self._union(field_.kind, name, table + slot, table + slots[field_.slot + 1], depth)
        else:
            self._value(field_.kind, name, table + slot, depth)

    def _union(self, union: UnionKind, name: str, tag_position: int, value_position: int, depth: int) -> None:
        tag = self._number("<B", tag_position, name)
        if not 1 <= tag <= len(union.members):
            self._add(tag_position, 1, f"{name} type {tag}: no such member of {union.name}")
            expected = f"a member of {union.name} from 1 to {len(union.members)}"
            raise MalformedError(name, where=tag_position, expected=expected, found=tag)
        member = declaration_of(union.members[tag - 1])
        self._add(tag_position, 1, f"{name} type {tag}: {member.name}")
        self._table(member, self._follow(value_position, name, member.name), depth + 1)

    def _value(self, kind: Kind, name: str, position: int, depth: int) -> None:
        match kind:
            case ScalarKind(scalar=scalar):
                number = self._number(scalar.format, position, name)
                shown = bool(number) if kind.is_bool else hex(number) if name == "Manifest.kind" else number
                self._add(position, scalar.size_bytes, f"{name}: {shown}")
            case EnumKind(enum=enum):
                number = self._number(enum.scalar.format, position, name)
                try:
                    text = enum(number).text
                except ValueError:
                    text = "no such member"
                self._add(position, enum.scalar.size_bytes, f"{name}: {number} = {text}")
            case TimestampKind():
                self._timestamp(name, position)
            case TextKind():
                self._text(name, self._follow(position, name, "text"))
            case BytesKind():
                self._bytes(kind, name, self._follow(position, name, "bytes"))
            case TableKind(type=table):
                declaration = declaration_of(table)
                self._table(declaration, self._follow(position, name, declaration.name), depth + 1)
            case VectorKind(element=element):
                self._vector(element, name, self._follow(position, name, "list"), depth)
            case UnionKind():
                raise TypeError("a union has two slots")

    def _timestamp(self, name: str, position: int) -> None:
        self._need(position, _TIMESTAMP.size, name)
        year, ordinal, _, second_of_day, nanoseconds = _TIMESTAMP.unpack_from(self.data, position)
        try:
            shown = str(Timestamp.from_day_of_year(year, ordinal, second_of_day, nanoseconds))
        except MalformedError as error:
            shown = str(error)
        parts = f"year {year}, day {ordinal}, {second_of_day} s, {nanoseconds} ns"
        self._add(position, _TIMESTAMP.size, f"{name}: {parts} = {shown}")

    def _text(self, name: str, position: int) -> None:
        length = self._length(name, position, 1)
        data = self.data[position + _OFFSET_BYTES : position + _OFFSET_BYTES + length]
        text = data.decode("utf-8", "replace")
        shown = repr(text[:SHOWN_CHARACTERS]) + ("…" if len(text) > SHOWN_CHARACTERS else "")
        self._need(position + _OFFSET_BYTES, length + 1, name)
        self._add(position + _OFFSET_BYTES, length + 1, f"{name}: {shown} and a zero")

    def _bytes(self, kind: BytesKind, name: str, position: int) -> None:
        length = self._length(name, position, 1)
        start = position + _OFFSET_BYTES
        if name == "Manifest.content":
            self.run(declaration_of(MetadataBlock), start, start + length)
            return
        shown = f"{length} bytes"
        if kind.type is not bytes:
            try:
                shown = str(kind.type.decode(self.data[start : start + length]))
            except OdfError as error:
                shown = str(error)
        self._add(start, length, f"{name}: {shown}")

    def _vector(self, element: Kind, name: str, position: int, depth: int) -> None:
        length = self._length(name, position, _OFFSET_BYTES)
        for index in range(length):
            place = position + _OFFSET_BYTES * (index + 1)
            item = f"{name}[{index}]"
            if isinstance(element, UnionKind):
                wrapper = _wrapper_of(element)
                slots = self._vtable(wrapper, table := self._follow(place, item, wrapper.name))
                self._field(wrapper, wrapper.fields[0], slots, table, depth + 1)
            else:
                self._value(element, item, place, depth)

    def _length(self, name: str, position: int, element_bytes: int) -> int:
        length = self._number("<I", position, name)
        self._add(position, _OFFSET_BYTES, f"{name}: length {length}")
        self._need(position + _OFFSET_BYTES, length * element_bytes, name)
        return length

    def _follow(self, position: int, name: str, target: str) -> int:
        offset = self._number("<I", position, name)
        self._add(position, _OFFSET_BYTES, f"{name} → {target} at {position + offset}")
        if offset == 0:
            raise MalformedError(name, where=position, expected="an offset forward", found=0)
        return position + offset

    def _number(self, layout: str, position: int, name: str) -> int:
        self._need(position, struct.calcsize(layout), name)
        number: int = struct.unpack_from(layout, self.data, position)[0]
        return number

    def _need(self, position: int, size_bytes: int, name: str) -> None:
        if not self._base <= position <= self._end - size_bytes:
            expected = f"{size_bytes} bytes inside of the buffer, which ends at {self._end}"
            raise MalformedError(name, where=max(position, 0), expected=expected, found="an end before them")


def _slot_names(declaration: Declaration) -> list[str]:
    names: list[str] = []
    for field_ in declaration.fields:
        names += [f"{field_.name} type", field_.name] if isinstance(field_.kind, UnionKind) else [field_.name]
    return names


def _wrapper_of(union: UnionKind) -> Declaration:
    """The table around each element of a list of unions."""
    wrapper: type[Any] = type(f"{union.name}Wrapper", (), {})
    return Declaration(wrapper, (Field("value", 0, union, False, None),), 2)
