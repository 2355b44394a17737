"""Guess the columns of a source of JSON that declares no schema, as ODF's reference implementation does.

A JSON string is text, whatever it looks like; numbers are whole or not; arrays and objects are lists and structs. What
has several types is text, which for anything but a string is its JSON: the reference implementation refuses it.

Source: ODF ReadStepJson, ReadStepNdJson without schema; spec/ingest.md ING-3.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

_LONG = range(-(2**63), 2**63)
_UNKNOWN = pa.null()
_NUMBERS = {pa.int64(), pa.float64()}
_DEEPEST = 16  # guess: what lies deeper is kept as the JSON text of its outer values


def guess_columns(rows: Iterable[Mapping[str, Any]]) -> pa.Schema:
    """Guess the columns of records, which may all be null, in order of first appearance.

    Args:
        rows: Decoded JSON objects.
    """
    found: dict[str, pa.DataType] = {}
    for row in rows:
        _add_members(found, row, 0)
    return pa.schema([pa.field(name, _known(kind)) for name, kind in found.items()])


def _type_of(value: Any, depth: int) -> pa.DataType:
    """Give the type of one value; nothing is known from a null."""
    match value:
        case None:
            return _UNKNOWN
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if value in _LONG else pa.float64()
        case float():
            return pa.float64()
        case list() if depth < _DEEPEST:
            item = _UNKNOWN
            for each in value:
                item = _merged(item, _type_of(each, depth + 1))
            return pa.list_(pa.field("item", item))
        case dict() if value and depth < _DEEPEST:
            members: dict[str, pa.DataType] = {}
            _add_members(members, value, depth + 1)
            return pa.struct(list(members.items()))
    return pa.string()


def _add_members(found: dict[str, pa.DataType], row: Mapping[str, Any], depth: int) -> None:
    for name, value in row.items():
        found[name] = _merged(found.get(name, _UNKNOWN), _type_of(value, depth))


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Give the type that holds values of both."""
    if one == other or other == _UNKNOWN:
        return one
    if one == _UNKNOWN:
        return other
    if {one, other} == _NUMBERS:
        return pa.float64()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(pa.field("item", _merged(one.value_type, other.value_type)))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, _UNKNOWN), field.type)
        return pa.struct(list(fields.items()))
    return pa.string()


def _known(kind: pa.DataType) -> pa.DataType:
    """Make text of what was never seen."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _known(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _known(field.type)) for field in kind])
    return pa.string() if kind == _UNKNOWN else kind
