"""Decodes declared tables from bytes of strangers.

FlatBuffers are made of offsets. A careless reader follows them out of the buffer, in circles' worth of work, or into
meanings the writer did not have. Here every read is inside the buffer and inside its table, aligned, within the limits
of ``limits``; a field, a tag or a member that the declaration does not know is an error, never a guess.

Source: FlatBuffers internals; clauses WIRE-4 to WIRE-13 of ``spec/odf-profile.md``.
"""

import struct
from functools import cache
from typing import Any, NamedTuple, TypeVar, assert_never

from odf_protocol.enums import Scalar
from odf_protocol.errors import MalformedError, UnsupportedError
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
from odf_protocol.wire.limits import MAX_DEPTH, MAX_TABLES, MAX_VECTOR_LENGTH, MIN_TABLE_SIZE_BYTES

_Table = TypeVar("_Table")

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_TIMESTAMP = struct.Struct("<iH2sII")
_OFFSET_BYTES = 4
_TAG_BYTES = 1
_VTABLE_HEADER_BYTES = 4


class Decoder:
    """Reads one buffer, once.

    Parts of a buffer may be shared, and small ones could unfold into a huge object. So the work is bounded by the
    buffer's size: it may hold as many tables, and values of as many bytes, as if nothing were shared.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._tables_left = min(MAX_TABLES, len(data) // MIN_TABLE_SIZE_BYTES)
        self._payload_left = len(data)

    def decode_root(self, table: type[_Table]) -> _Table:
        """Decode the buffer as one table.

        Raises:
            MalformedError: Bytes do not follow the format; says which field, at which byte.
            UnsupportedError: A slot, tag or member that is not declared.
        """
        declaration = declaration_of(table)
        value = self._table(declaration, self._follow(0, declaration.name), depth=1)
        assert isinstance(value, table)
        return value

    # Tables

    def _table(self, declaration: Declaration, position: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise MalformedError(declaration.name, where=position, expected=f"at most {MAX_DEPTH} levels", found="more")
        self._tables_left -= 1
        if self._tables_left < 0:
            raise MalformedError("buffer", where=position, expected="no more tables than fit", found="one more")
        slots, size_bytes = self._slots(declaration.name, declaration.slot_count, position)
        values = {
            place.field.name: self._field(place, slots, position, size_bytes, depth)
            for place in _places_of(declaration.type)
        }
        try:
            return declaration.type(**values)
        except MalformedError as error:
            raise MalformedError(error.what, where=position, expected=error.expected, found=error.found) from error

    def _slots(self, name: str, slot_count: int, position: int) -> tuple[tuple[int, ...], int]:
        """Read the vtable: where each field lies in the table (0 if absent), and the table's size in bytes."""
        self._need(position, 4, 4, name)
        vtable = position - _I32.unpack_from(self._data, position)[0]
        self._need(vtable, _VTABLE_HEADER_BYTES, 2, f"vtable of {name}")
        (vtable_bytes,) = _U16.unpack_from(self._data, vtable)
        (size_bytes,) = _U16.unpack_from(self._data, vtable + 2)
        if vtable_bytes < _VTABLE_HEADER_BYTES or vtable_bytes % 2:
            raise MalformedError(f"vtable of {name}", where=vtable, expected="an even size from 4", found=vtable_bytes)
        self._need(vtable, vtable_bytes, 2, f"vtable of {name}")
        if size_bytes < _OFFSET_BYTES:
            raise MalformedError(name, where=vtable, expected="a table of at least 4 bytes", found=size_bytes)
        self._need(position, size_bytes, 4, name)
        count = (vtable_bytes - _VTABLE_HEADER_BYTES) // 2
        if count > slot_count:
            raise UnsupportedError(f"fields of {name}", found=f"{count} slots", supported=slot_count)
        absent = (0,) * (slot_count - count)
        return _slots_struct(count).unpack_from(self._data, vtable + _VTABLE_HEADER_BYTES) + absent, size_bytes

    def _field(self, place: "_Place", slots: tuple[int, ...], table: int, table_bytes: int, depth: int) -> Any:
        name, field, inline_bytes = place
        kind, slot = field.kind, slots[field.slot]
        if isinstance(kind, UnionKind):
            value_slot = slots[field.slot + 1]
            if bool(slot) != bool(value_slot):
                raise MalformedError(name, where=table, expected="tag and value of the union", found="one of them")
            if slot:
                _check_inside(name, table, slot, _TAG_BYTES, table_bytes)
                _check_inside(name, table, value_slot, _OFFSET_BYTES, table_bytes)
                return self._union(kind, table + slot, table + value_slot, depth, name)
        elif slot:
            _check_inside(name, table, slot, inline_bytes, table_bytes)
            return self._value(kind, table + slot, depth, name)
        if field.is_optional:
            return None
        match kind:
            case ScalarKind():
                return False if kind.is_bool else 0
            case EnumKind():
                return kind.enum(0)
        raise MalformedError(name, where=table, expected="a value", found="nothing")

    def _union(self, union: UnionKind, tag_position: int, value_position: int, depth: int, name: str) -> Any:
        tag = self._data[tag_position]
        if not 1 <= tag <= len(union.members):
            raise UnsupportedError(f"member of {union.name}", found=tag, supported=f"1 to {len(union.members)}")
        member = declaration_of(union.members[tag - 1])
        return self._table(member, self._follow(value_position, name), depth + 1)

    # Values

    def _value(self, kind: Kind, position: int, depth: int, name: str) -> Any:
        """Read a value whose inline part at ``position`` was found to lie inside of the buffer."""
        match kind:
            case BytesKind():
                return self._bytes(kind, self._follow(position, name), name)
            case ScalarKind(scalar, is_bool):
                number = self._scalar(scalar, position, name)
                return bool(number) if is_bool else number
            case VectorKind(element):
                return self._vector(element, self._follow(position, name), depth, name)
            case TableKind(table):
                return self._table(declaration_of(table), self._follow(position, name), depth + 1)
            case TextKind():
                return self._text(self._follow(position, name), name)
            case TimestampKind():
                return self._timestamp(position, name)
            case EnumKind(enum):
                number = self._scalar(enum.scalar, position, name)
                try:
                    return enum(number)
                except ValueError:
                    raise UnsupportedError(f"member of {enum.__name__}", found=number) from None
            case UnionKind():
                raise TypeError("a union has two slots")
        assert_never(kind)

    def _scalar(self, scalar: Scalar, position: int, name: str) -> int:
        self._need(position, scalar.size_bytes, scalar.size_bytes, name)
        number: int = struct.unpack_from(scalar.format, self._data, position)[0]
        if number > scalar.maximum:
            raise MalformedError(name, where=position, expected=f"at most {scalar.maximum}", found=number)
        return number

    def _timestamp(self, position: int, name: str) -> Timestamp:
        # No alignment: version 2 has none.
        self._need(position, _TIMESTAMP.size, 1, name)
        year, ordinal, padding, second_of_day, nanoseconds = _TIMESTAMP.unpack_from(self._data, position)
        if padding != b"\0\0":
            raise MalformedError(name, where=position, expected="zero padding", found=padding.hex())
        try:
            return Timestamp.from_day_of_year(year, ordinal, second_of_day, nanoseconds)
        except MalformedError as error:
            raise MalformedError(name, where=position, expected=error.expected, found=error.found) from error

    def _text(self, position: int, name: str) -> str:
        start, length = self._length(position, 1, name)
        data = self._take(start, length + 1, name)
        if data[-1]:
            raise MalformedError(name, where=start + length, expected="a zero after the text", found=data[-1])
        try:
            return data[:-1].decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedError(name, where=start + error.start, expected="UTF-8", found=error.reason) from error

    def _bytes(self, kind: BytesKind, position: int, name: str) -> Any:
        start, length = self._length(position, 1, name)
        data = self._take(start, length, name)
        if kind.type is bytes:
            return data
        try:
            return kind.type.decode(data)
        except MalformedError as error:
            raise MalformedError(name, where=start, expected=error.expected, found=error.found) from error

    def _vector(self, element: Kind, position: int, depth: int, name: str) -> tuple[Any, ...]:
        start, length = self._length(position, _OFFSET_BYTES, name)
        if length > MAX_VECTOR_LENGTH:
            raise MalformedError(name, where=position, expected=f"at most {MAX_VECTOR_LENGTH} elements", found=length)
        places = range(start, start + length * _OFFSET_BYTES, _OFFSET_BYTES)
        return tuple([self._element(element, place, depth, name) for place in places])

    def _element(self, element: Kind, position: int, depth: int, name: str) -> Any:
        if isinstance(element, UnionKind):
            return self._wrapped(element, self._follow(position, name), depth + 1, name)
        return self._value(element, position, depth, name)

    def _wrapped(self, union: UnionKind, position: int, depth: int, name: str) -> Any:
        """Read an element of a vector of unions: a table of tag and value."""
        slots, size_bytes = self._slots(f"{union.name}Wrapper", 2, position)
        place = _Place(name, Field("value", 0, union, False, None), _OFFSET_BYTES)
        return self._field(place, slots, position, size_bytes, depth)

    # Bytes

    def _follow(self, position: int, name: str) -> int:
        """Return where the unsigned offset at ``position`` leads; forward only, so there are no circles."""
        self._need(position, _OFFSET_BYTES, _OFFSET_BYTES, name)
        (offset,) = _U32.unpack_from(self._data, position)
        if offset == 0:
            raise MalformedError(name, where=position, expected="an offset forward", found=0)
        return position + int(offset)

    def _length(self, position: int, element_bytes: int, name: str) -> tuple[int, int]:
        """Read the length of a vector whose elements must fit; return where they start, and their number."""
        self._need(position, 4, 4, name)
        (length,) = _U32.unpack_from(self._data, position)
        self._need(position + 4, length * element_bytes, 1, name)
        return position + 4, length

    def _take(self, position: int, size_bytes: int, name: str) -> bytes:
        self._need(position, size_bytes, 1, name)
        self._payload_left -= size_bytes
        if self._payload_left < 0:
            raise MalformedError("buffer", where=position, expected="no more values than fit", found="more")
        return self._data[position : position + size_bytes]

    def _need(self, position: int, size_bytes: int, alignment: int, name: str) -> None:
        if not 0 <= position <= len(self._data) - size_bytes:
            expected = f"{size_bytes} bytes inside of the buffer of {len(self._data)}"
            raise MalformedError(name, where=position, expected=expected, found="an end before them")
        if position % alignment:
            raise MalformedError(name, where=position, expected=f"alignment to {alignment}", found=position % alignment)


def _check_inside(name: str, table: int, slot: int, size_bytes: int, table_bytes: int) -> None:
    """Check that a field lies behind the table's first offset and before its end."""
    if not _OFFSET_BYTES <= slot <= table_bytes - size_bytes:
        expected = f"{size_bytes} bytes inside of the table of {table_bytes}"
        raise MalformedError(name, where=table, expected=expected, found=f"slot at {slot}")


def _inline_size_bytes(kind: Kind) -> int:
    match kind:
        case ScalarKind(scalar):
            return scalar.size_bytes
        case EnumKind():
            return kind.scalar.size_bytes
        case TimestampKind():
            return _TIMESTAMP.size
    return _OFFSET_BYTES


class _Place(NamedTuple):
    """A field of a table: its name for errors, what it is, and how many bytes of the table it takes."""

    name: str
    field: Field
    inline_bytes: int


_places: dict[type[Any], tuple[_Place, ...]] = {}


def _places_of(table: type[Any]) -> tuple[_Place, ...]:
    known = _places.get(table)
    if known is None:
        named = declaration_of(table)
        known = tuple(_Place(f"{named.name}.{each.name}", each, _inline_size_bytes(each.kind)) for each in named.fields)
        _places[table] = known
    return known


@cache
def _slots_struct(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}H")
