"""Columns of Iceberg tables (ICEBERG-9 to ICEBERG-12)."""

import json
from typing import Any

import pytest
from pyiceberg.schema import Schema

from odf_iceberg.columns import ColumnIds, columns_of, name_mapping_of
from odf_protocol import events as odf
from odf_protocol.vocabulary import Vocabulary, system_fields


def schema_of(**types: odf.DataType) -> odf.DataSchema:
    fields = tuple(odf.DataField(name=name, type=kind) for name, kind in types.items())
    return odf.DataSchema(fields=(*system_fields(Vocabulary()), *fields))


def optional(kind: odf.DataType) -> odf.DataType:
    return odf.DataTypeOption(inner=kind)


UNITS = odf.TimeUnit
SHOWN: list[tuple[odf.DataType, str]] = [
    (odf.DataTypeBool(), "boolean"),
    (odf.DataTypeInt8(), "int"),
    (odf.DataTypeInt16(), "int"),
    (odf.DataTypeInt32(), "int"),
    (odf.DataTypeUInt8(), "int"),
    (odf.DataTypeUInt16(), "int"),
    (odf.DataTypeInt64(), "long"),
    (odf.DataTypeFloat32(), "float"),
    (odf.DataTypeFloat64(), "double"),
    (odf.DataTypeDecimal(precision=38, scale=4), "decimal(38, 4)"),
    (odf.DataTypeDate(), "date"),
    (odf.DataTypeTime(), "time"),
    (odf.DataTypeTimestamp(), "timestamptz"),
    (odf.DataTypeTimestamp(unit=UNITS.MICROSECOND), "timestamptz"),
    (odf.DataTypeString(), "string"),
    (odf.DataTypeBinary(), "binary"),
    (odf.DataTypeBinary(fixed_length=4), "fixed[4]"),
]
OMITTED: list[odf.DataType] = [
    odf.DataTypeUInt32(),
    odf.DataTypeUInt64(),
    odf.DataTypeFloat16(),
    odf.DataTypeDuration(),
    odf.DataTypeNull(),
    odf.DataTypeTimestamp(unit=UNITS.NANOSECOND),
    odf.DataTypeTime(unit=UNITS.NANOSECOND),
    odf.DataTypeDecimal(precision=39, scale=0),
    odf.DataTypeDecimal(precision=10, scale=-2),
    odf.DataTypeList(item_type=odf.DataTypeUInt64()),
    odf.DataTypeStruct(fields=(odf.DataField(name="a", type=odf.DataTypeUInt32()),)),
]


@pytest.mark.parametrize(("kind", "expected"), SHOWN, ids=str)
@pytest.mark.parametrize("is_optional", [True, False])
def test_type_is_icebergs_and_what_is_no_option_is_required_iceberg_11(
    kind: odf.DataType, expected: str, is_optional: bool
) -> None:
    columns = columns_of(schema_of(a=optional(kind) if is_optional else kind), ColumnIds())
    assert columns.fields[-1]["type"] == expected
    assert columns.fields[-1]["required"] is not is_optional
    assert columns.omitted == ()


@pytest.mark.parametrize("kind", OMITTED, ids=str)
def test_type_that_no_reader_reads_from_a_slice_is_not_shown_but_named_iceberg_12(kind: odf.DataType) -> None:
    columns = columns_of(schema_of(a=kind, b=odf.DataTypeInt64()), ColumnIds())
    assert [each["name"] for each in columns.fields][-1] == "b"
    assert columns.omitted == ("a",)


NESTED = odf.DataTypeStruct(
    fields=(
        odf.DataField(name="x", type=odf.DataTypeInt64()),
        odf.DataField(name="tags", type=optional(odf.DataTypeList(item_type=optional(odf.DataTypeString())))),
        odf.DataField(
            name="by", type=odf.DataTypeMap(key_type=odf.DataTypeString(), value_type=optional(odf.DataTypeInt64()))
        ),
    )
)


def ids_in(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [found for name, found in value.items() if name in ("id", "field-id") or name.endswith("-id")]
        return own + [each for child in value.values() for each in ids_in(child)]
    return [each for child in value for each in ids_in(child)] if isinstance(value, list | tuple) else []


def test_ids_are_unique_kept_and_those_of_the_mapping_iceberg_9_iceberg_10() -> None:
    ids = ColumnIds()
    first = columns_of(schema_of(place=NESTED), ids)
    wider = odf.DataTypeStruct(fields=(*NESTED.fields, odf.DataField(name="y", type=optional(odf.DataTypeBool()))))
    schema = schema_of(new=optional(odf.DataTypeInt64()), place=wider)
    second = columns_of(schema, ids)
    before, after = ids_in(first.fields), ids_in(second.fields)
    assert len(set(before)) == len(before)
    assert len(set(after)) == len(after)
    assert set(before) < set(after)
    assert max(after) == ids.last
    assert sorted(ids_in(json.loads(name_mapping_of(schema, ids)))) == sorted(after)
    for columns in (first, second):
        Schema.model_validate({"type": "struct", "schema-id": 0, "fields": columns.fields})


def test_columns_that_a_table_leaves_out_have_an_id_all_the_same_iceberg_9() -> None:
    schema = schema_of(city=odf.DataTypeString())
    all_columns, some = (columns_of(schema, ColumnIds(), left_out) for left_out in ((), ("offset", "op")))
    assert [each for each in all_columns.fields if each["name"] not in ("offset", "op")] == list(some.fields)


@pytest.mark.parametrize("kind", OMITTED, ids=str)
def test_names_in_slices_are_mapped_whether_they_are_shown_or_not_iceberg_10(kind: odf.DataType) -> None:
    ids = ColumnIds()
    schema = schema_of(a=optional(kind))
    columns_of(schema, ids)
    mapping = json.loads(name_mapping_of(schema, ids))
    assert [each["names"] for each in mapping][-1] == ["a"]
    assert max(ids_in(mapping)) == ids.last
