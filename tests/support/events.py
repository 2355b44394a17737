"""Hypothesis strategies for every event, made from the declarations: whatever can be declared is generated."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from odf_protocol.did import DatasetId
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
    Event,
    ExtraAttributes,
)
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
from odf_protocol.multihash import ARROW0_SHA3_256, SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp

EVENT_KIND = union_kind_of(Event)
_TYPES_OF_TYPES = (DataTypeOption, DataTypeList, DataTypeMap, DataTypeStruct)
_DATA_TYPE_KIND = union_kind_of(DataType)

# Words that some YAML reader takes for something else, and characters that its grammar cares about.
TRICKY_TEXTS = (
    *("no", "on", "y", "null", "~", "true", "1e3", "0x1F", "0777", "1_000", "12:30", "2020-01-01", ".inf", "=", "<<"),
    *("", " ", "a: b", "a #b", "- a", "'", '"', "%", "@", "\\", "---", "...", "{}", "[a", "a, b", "!x", "&x", "*x"),
    *("a\nb", "a\n", "\na", " a\nb\n\n", "\t", "a\r\n", "\x00", "\x85", "\u2028", "\ufeff", "a\n\u2028 b"),
    *("é", "\U0001f600", "\ue000\U0001f600"),
)

texts = st.sampled_from(TRICKY_TEXTS) | st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
hashes = st.builds(Multihash, st.sampled_from([SHA3_256, ARROW0_SHA3_256]), st.binary(min_size=32, max_size=32))
dataset_ids = st.builds(DatasetId, st.binary(min_size=32, max_size=32))
timestamps = st.builds(
    Timestamp,
    st.integers(-62135596800, 253402300799),
    st.sampled_from([0, 1, 1_000, 1_000_000, 500_000_000, 999_999_999]),
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
extras = st.dictionaries(texts, json_values, max_size=3).map(ExtraAttributes.of)


@cache
def values_of(kind: Kind) -> st.SearchStrategy[Any]:
    """Any value of a declared kind."""
    match kind:
        case TextKind():
            return texts
        case TimestampKind():
            return timestamps
        case ScalarKind():
            if kind.is_bool:
                return st.booleans()
            return st.integers(kind.scalar.minimum, kind.scalar.maximum) | st.sampled_from([0, 1, kind.scalar.maximum])
        case EnumKind():
            return st.sampled_from(kind.enum)
        case BytesKind():
            return {Multihash: hashes, DatasetId: dataset_ids}.get(kind.type, st.binary(max_size=40))
        case VectorKind():
            return st.lists(values_of(kind.element), max_size=3).map(tuple)
        case UnionKind():
            return data_types() if kind == _DATA_TYPE_KIND else st.one_of([tables(member) for member in kind.members])
        case TableKind():
            return extras if kind.type is ExtraAttributes else tables(kind.type)


@cache
def tables(table: type[Any]) -> st.SearchStrategy[Any]:
    """Any object of a declared dataclass."""
    fields = {
        field.name: (st.none() | values_of(field.kind) if field.is_optional else values_of(field.kind))
        for field in declaration_of(table).fields
    }
    return st.builds(table, **fields)


@cache
def data_types() -> st.SearchStrategy[Any]:
    """Any data type, a few levels deep."""
    leaves = st.one_of([tables(member) for member in _DATA_TYPE_KIND.members if member not in _TYPES_OF_TYPES])
    return st.recursive(leaves, _wrap, max_leaves=5)


def _wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:

    lengths = st.none() | st.integers(0, 2**64 - 1)
    fields = st.builds(DataField, name=texts, type=inner, extra=st.none() | extras)
    return st.one_of(
        st.builds(DataTypeOption, inner=inner),
        st.builds(DataTypeList, item_type=inner, fixed_length=lengths),
        st.builds(DataTypeMap, key_type=inner, value_type=inner, keys_sorted=st.none() | st.booleans()),
        st.builds(DataTypeStruct, fields=st.lists(fields, max_size=3).map(tuple)),
    )


def events() -> st.SearchStrategy[Any]:
    """Any of the 13 events."""
    return values_of(EVENT_KIND)


def data_schemas() -> st.SearchStrategy[DataSchema]:
    """Any data schema."""
    return tables(DataSchema)
