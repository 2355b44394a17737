"""How an event is declared once and read by everybody: FlatBuffers codec, manifests, semantic equality.

Every table of the ODF schema is one frozen dataclass. Its annotations are the declaration:

=============================  ==================================================================
annotation                     on the wire
=============================  ==================================================================
``U64``, ``I32``, ``bool`` ...  scalar; absent means 0, false or the first member
``U64 | None``                 scalar without default: absent means None, 0 is written
an enum                        scalar of the enum's ``scalar``
``Timestamp``                  inline struct
``str``                        string
``bytes``, a hash, an id       vector of bytes, through ``to_bytes`` and ``decode``
a dataclass                    table
``tuple[X, ...]``              vector
``Annotated[A | B, Union(n)]`` union: two slots; the tag is the position in the list, from 1
=============================  ==================================================================

**The order of fields is the order of slots.** A field without ``| None`` must be present, save for scalars.
``DefaultsTo`` names the value that an absent optional stands for; see ``equality``.

Source: ODF metadata block serialization: slots, unions, optional scalars.
"""

import types
import typing
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any

from odf_protocol.did import DatasetId
from odf_protocol.enums import BOOL, INT16, INT32, INT64, UINT32, UINT64, Scalar, WireEnum
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

# Plain aliases, so that a field's annotation says how wide it is.
I16 = Annotated[int, INT16]
I32 = Annotated[int, INT32]
I64 = Annotated[int, INT64]
U32 = Annotated[int, UINT32]
U64 = Annotated[int, UINT64]


@dataclass(frozen=True, slots=True)
class Union:
    """Marks an alias as an ODF union.

    Attributes:
        name: Of the union; members drop it in manifests (``FetchStepUrl`` is written ``Url``).
        prefix: What members drop, where it is not the name.
    """

    name: str
    prefix: str | None = None


@dataclass(frozen=True, slots=True)
class DefaultsTo:
    """The value that an absent optional field stands for when two objects are compared."""

    value: object


@dataclass(frozen=True, slots=True)
class ScalarKind:
    """A number or a boolean, inline."""

    scalar: Scalar
    is_bool: bool


@dataclass(frozen=True, slots=True)
class EnumKind:
    """A member of an enumeration, inline."""

    enum: type[WireEnum]

    @property
    def scalar(self) -> Scalar:
        """Storage of the enumeration."""
        return self.enum.scalar


@dataclass(frozen=True, slots=True)
class TimestampKind:
    """The 16-byte struct, inline."""


@dataclass(frozen=True, slots=True)
class TextKind:
    """A UTF-8 string."""


@dataclass(frozen=True, slots=True)
class BytesKind:
    """A vector of bytes, raw or a value with a binary form."""

    type: type[bytes] | type[Multihash] | type[DatasetId]


@dataclass(frozen=True, slots=True)
class TableKind:
    """A nested table."""

    type: type[Any]


@dataclass(frozen=True, slots=True)
class VectorKind:
    """A list; elements that are unions sit in a wrapper table each."""

    element: "Kind"


@dataclass(frozen=True, slots=True)
class UnionKind:
    """One of several tables, chosen by a tag that is the position of the member, from 1."""

    name: str
    prefix: str
    members: tuple[type[Any], ...]

    def tag_of(self, member: type[Any]) -> int:
        """Return the tag of a member; a ``ValueError`` if it is none."""
        return self.members.index(member) + 1

    def name_of(self, member: type[Any]) -> str:
        """Return how manifests call a member in ``kind:``."""
        return member.__name__.removeprefix(self.prefix)


Kind = ScalarKind | EnumKind | TimestampKind | TextKind | BytesKind | TableKind | VectorKind | UnionKind


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table.

    Attributes:
        name: As in ODF, in snake_case.
        slot: Number of the slot; for a union of the tag's slot, the value follows it.
        kind: What is stored.
        is_optional: May be None.
        default: What an absent value stands for; None if nothing.
    """

    name: str
    slot: int
    kind: Kind
    is_optional: bool
    default: object

    @property
    def camel_name(self) -> str:
        """The name as YAML and JSON spell it."""
        first, *rest = self.name.split("_")
        return first + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A table: its class and its fields in slot order."""

    type: type[Any]
    fields: tuple[Field, ...]
    slot_count: int

    @property
    def name(self) -> str:
        """Name of the table in the ODF schema."""
        return self.type.__name__


_declarations: dict[type[Any], Declaration] = {}


def declaration_of(table: type[Any]) -> Declaration:
    """Return the declaration in the annotations of a dataclass; read once per class."""
    known = _declarations.get(table)
    if known is None:
        known = _declarations[table] = _read_declaration(table)
    return known


def _read_declaration(table: type[Any]) -> Declaration:
    hints = typing.get_type_hints(table, include_extras=True)
    declared, slot = [], 0
    for field in fields(table):
        bare, is_optional, default = _without_none(hints[field.name])
        kind = _kind_of(bare)
        declared.append(Field(field.name, slot, kind, is_optional, default))
        slot += 2 if isinstance(kind, UnionKind) else 1
    return Declaration(table, tuple(declared), slot)


def union_kind_of(alias: Any) -> UnionKind:
    """Read a union alias such as ``Event``."""
    kind = _kind_of(alias)
    if not isinstance(kind, UnionKind):
        raise TypeError(f"not a union: {alias}")
    return kind


def _without_none(hint: Any) -> tuple[Any, bool, object]:
    """Split ``Annotated[X | None, DefaultsTo(d)]`` into X, whether None was there, and d."""
    default: object = None
    if typing.get_origin(hint) is Annotated and isinstance(hint.__metadata__[0], DefaultsTo):
        default, hint = hint.__metadata__[0].value, hint.__origin__
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not types.NoneType]
        if len(members) != 1:
            raise TypeError(f"a union must be an alias marked with Union(...): {hint}")
        return members[0], True, default
    return hint, False, default


def _kind_of(hint: Any) -> Kind:
    if typing.get_origin(hint) is Annotated:
        match hint.__metadata__[0]:
            case Scalar() as scalar:
                return ScalarKind(scalar, is_bool=False)
            case Union(name, prefix):
                members = typing.get_args(hint.__origin__) or (hint.__origin__,)
                return UnionKind(name, name if prefix is None else prefix, members)
    if typing.get_origin(hint) is tuple:
        return VectorKind(_kind_of(typing.get_args(hint)[0]))
    if hint is bool:
        return ScalarKind(BOOL, is_bool=True)
    if hint is str:
        return TextKind()
    if hint is Timestamp:
        return TimestampKind()
    if hint in (bytes, Multihash, DatasetId):
        return BytesKind(hint)
    if isinstance(hint, type) and issubclass(hint, WireEnum):
        return EnumKind(hint)
    if is_dataclass(hint):
        return TableKind(typing.cast("type[Any]", hint))
    raise TypeError(f"not a wire kind: {hint}")
