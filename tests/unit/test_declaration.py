"""What the annotations of events say about the wire."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from odf_protocol.events import CompressionFormat, DataTypeTimestamp, FetchStep, SetPollingSource, TransformSql
from odf_protocol.events.declaration import (
    U64,
    DefaultsTo,
    EnumKind,
    ScalarKind,
    TextKind,
    Union,
    UnionKind,
    VectorKind,
    declaration_of,
    union_kind_of,
)
from odf_protocol.events.source import MergeStrategySnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    number: U64
    optional: U64 | None = None
    listed: tuple[str, ...] = ()
    packed: CompressionFormat
    fetch: FetchStep | None = None
    zone: Annotated[str | None, DefaultsTo("UTC")] = None


def test_fields_are_read_in_the_order_of_slots() -> None:
    declared = declaration_of(Example)
    assert [(field.name, field.slot, field.is_optional) for field in declared.fields] == [
        ("number", 0, False),
        ("optional", 1, True),
        ("listed", 2, False),
        ("packed", 3, False),
        ("fetch", 4, True),  # a union takes two slots
        ("zone", 6, True),
    ]
    assert declared.slot_count == 7


def test_kinds_are_read_from_annotations() -> None:
    kinds = {field.name: field.kind for field in declaration_of(Example).fields}
    assert isinstance(kinds["number"], ScalarKind)
    assert kinds["number"] == kinds["optional"]
    assert kinds["listed"] == VectorKind(TextKind())
    assert kinds["packed"] == EnumKind(CompressionFormat)
    assert kinds["fetch"] == union_kind_of(FetchStep)


def test_defaults_are_for_absent_optionals() -> None:
    defaults = {field.name: field.default for field in declaration_of(DataTypeTimestamp).fields}
    assert defaults["timezone"] == "UTC"
    assert {field.default for field in declaration_of(TransformSql).fields} == {None}


def test_names_of_manifests_are_made_from_names_of_code() -> None:
    assert [field.camel_name for field in declaration_of(MergeStrategySnapshot).fields] == [
        "primaryKey",
        "compareColumns",
    ]
    assert [member.text for member in CompressionFormat] == ["Gzip", "Zip"]


def test_members_of_unions_are_numbered_from_1_and_drop_the_name_of_the_union() -> None:
    fetch = union_kind_of(FetchStep)
    assert [(fetch.tag_of(member), fetch.name_of(member)) for member in fetch.members] == [
        (1, "Url"),
        (2, "FilesGlob"),
        (3, "Container"),
        (4, "Mqtt"),
        (5, "EthereumLogs"),
    ]


def test_union_of_one_member_is_a_union() -> None:
    kind = {field.name: field.kind for field in declaration_of(SetPollingSource).fields}["preprocess"]
    assert isinstance(kind, UnionKind)
    assert kind.members == (TransformSql,)


def test_annotation_that_is_no_wire_kind_is_our_mistake() -> None:
    @dataclass
    class Wrong:
        value: float

    @dataclass
    class Unmarked:
        value: str | bytes

    for table in (Wrong, Unmarked):
        with pytest.raises(TypeError):
            declaration_of(table)
    with pytest.raises(TypeError):
        union_kind_of(Annotated[int, "no union"])
    assert Union("A") == Union("A", None)
