"""Whether two tables mean the same, as opposed to being written the same.

An absent optional equals its default, and attributes are JSON values. Hashes of course differ.

Source: ODF schema defaults; used by clauses CHAIN-14, CHAIN-34, CHAIN-46 and CHAIN-47 of ``spec/chain.md``.
"""

from dataclasses import replace
from typing import Any, TypeVar

from odf_protocol.events.declaration import Kind, TableKind, UnionKind, VectorKind, declaration_of
from odf_protocol.events.extra_attributes import ExtraAttributes

_Table = TypeVar("_Table")


def with_defaults(table: _Table) -> _Table:
    """Return the table with every absent optional that has a default filled in, in nested tables too."""
    if isinstance(table, ExtraAttributes):
        return table.canonical()
    changes: dict[str, Any] = {}
    for field in declaration_of(type(table)).fields:
        value = getattr(table, field.name)
        if value is None:
            value = field.default
        elif isinstance(field.kind, TableKind | UnionKind | VectorKind):
            value = _filled(field.kind, value)
        changes[field.name] = value
    return replace(table, **changes)  # type: ignore[type-var]  # every declared table is a dataclass


def means_the_same(one: object, other: object) -> bool:
    """Compare two tables, or None, with defaults filled in."""
    if one is None or other is None:
        return one is other
    return type(one) is type(other) and with_defaults(one) == with_defaults(other)


def _filled(kind: Kind, value: Any) -> Any:
    match kind:
        case TableKind() | UnionKind():
            return with_defaults(value)
        case VectorKind(element):
            return tuple(_filled(element, item) for item in value)
    return value
