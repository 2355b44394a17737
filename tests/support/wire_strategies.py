"""Hypothesis strategies for every table of the ODF schema, made from the same declarations as the codec."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from odf_protocol.did import DatasetId
from odf_protocol.events import Event, ExtraAttributes
from odf_protocol.events.declaration import (
    BytesKind,
    EnumKind,
    Kind,
    ScalarKind,
    TableKind,
    TextKind,
    TimestampKind,
    UnionKind,
    VectorKind,
    declaration_of,
    union_kind_of,
)
from odf_protocol.multihash import ARROW0_SHA3_256, SHA2_256, SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp

MAX_NESTING = 3

texts = st.text(max_size=8)
hashes = st.builds(
    Multihash, st.sampled_from([SHA3_256, SHA2_256, ARROW0_SHA3_256]), st.binary(min_size=32, max_size=32)
)
dataset_ids = st.builds(DatasetId, st.binary(min_size=32, max_size=32))
timestamps = st.builds(
    Timestamp,
    st.integers(Timestamp.parse("0001-01-01T00:00:00Z").seconds, Timestamp.parse("9999-12-31T23:59:59Z").seconds),
    st.integers(0, 999_999_999),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda values: st.lists(values, max_size=2) | st.dictionaries(texts, values, max_size=2),
    max_leaves=4,
)
attributes = st.builds(ExtraAttributes.of, st.dictionaries(texts, json_values, max_size=2))


@cache
def tables(table: type[Any], nesting: int = MAX_NESTING) -> st.SearchStrategy[Any]:
    """Objects of a declared table."""
    if table is ExtraAttributes:
        return attributes
    values = {}
    for field in declaration_of(table).fields:
        strategy = _values(field.kind, nesting)
        values[field.name] = st.none() | strategy if field.is_optional else strategy
    return st.builds(table, **values)


def _values(kind: Kind, nesting: int) -> st.SearchStrategy[Any]:
    match kind:
        case ScalarKind(scalar, is_bool):
            return st.booleans() if is_bool else st.integers(scalar.minimum, scalar.maximum) | st.just(0)
        case EnumKind(enum):
            return st.sampled_from(list(enum))
        case TimestampKind():
            return timestamps
        case TextKind():
            return texts
        case BytesKind(type_):
            return {bytes: st.binary(max_size=8), Multihash: hashes, DatasetId: dataset_ids}[type_]
        case TableKind(table):
            return tables(table, nesting)
        case VectorKind(element):
            return st.lists(_values(element, nesting), max_size=2).map(tuple)
        case UnionKind(members=members):
            allowed = members if nesting else [member for member in members if not _nests(member)]
            return st.one_of(*(tables(member, max(nesting - 1, 0)) for member in allowed))
    raise TypeError(kind)


def _nests(table: type[Any]) -> bool:
    return any(isinstance(field.kind, UnionKind | VectorKind) for field in declaration_of(table).fields)


events = st.one_of(*(tables(member) for member in union_kind_of(Event).members))
