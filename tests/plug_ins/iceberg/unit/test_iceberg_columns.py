"""Columns of Iceberg tables (ICEBERG-9 to ICEBERG-12)."""

import io
import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema

from odf_iceberg.columns import ColumnIds, columns_of, name_mapping_of
from odf_iceberg.readable_types import is_readable, readable_schema
from odf_node.rows.slice_process import SliceProcess
from odf_protocol import events as odf
from odf_protocol.schema_arrow import rows_schema_of
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
    (odf.DataTypeInt64(), "long"),
    (odf.DataTypeFloat32(), "float"),
    (odf.DataTypeFloat64(), "double"),
    (odf.DataTypeDecimal(precision=38, scale=4), "decimal(38, 4)"),
    (odf.DataTypeDate(), "date"),
    (odf.DataTypeTime(unit=UNITS.MICROSECOND), "time"),
    (odf.DataTypeTimestamp(), "timestamptz"),
    (odf.DataTypeTimestamp(unit=UNITS.SECOND, timezone="UTC"), "timestamptz"),
    (odf.DataTypeTimestamp(unit=UNITS.MICROSECOND), "timestamptz"),
    (odf.DataTypeString(), "string"),
    (odf.DataTypeBinary(), "binary"),
    (odf.DataTypeBinary(fixed_length=4), "fixed[4]"),
]
TURNED: list[tuple[odf.DataType, str]] = [
    (odf.DataTypeUInt8(), "int"),
    (odf.DataTypeUInt16(), "int"),
    (odf.DataTypeUInt32(), "long"),
    (odf.DataTypeUInt64(), "decimal(20, 0)"),
    (odf.DataTypeFloat16(), "float"),
    (odf.DataTypeDuration(), "long"),
    (odf.DataTypeNull(), "string"),
    (odf.DataTypeTime(), "time"),
    (odf.DataTypeTime(unit=UNITS.SECOND), "time"),
    (odf.DataTypeTime(unit=UNITS.NANOSECOND), "long"),
    (odf.DataTypeTimestamp(unit=UNITS.NANOSECOND), "long"),
    (odf.DataTypeTimestamp(timezone="Europe/Oslo"), "timestamptz"),
    (odf.DataTypeDecimal(precision=39, scale=1), "string"),
]
"""Types that are written in others for Iceberg's readers."""


@pytest.mark.parametrize(("kind", "expected"), SHOWN, ids=str)
@pytest.mark.parametrize("is_optional", [True, False])
def test_type_is_icebergs_and_what_is_no_option_is_required_iceberg_11(
    kind: odf.DataType, expected: str, is_optional: bool
) -> None:
    columns = columns_of(schema_of(a=optional(kind) if is_optional else kind), ColumnIds())
    assert columns[-1]["type"] == expected
    assert columns[-1]["required"] is not is_optional


def around(kind: odf.DataType) -> list[odf.DataType]:
    """A type, and others with it inside."""
    item = optional(kind)
    return [
        kind,
        odf.DataTypeList(item_type=item),
        odf.DataTypeList(item_type=item, fixed_length=1),
        odf.DataTypeStruct(fields=(odf.DataField(name="a", type=item),)),
        odf.DataTypeMap(key_type=odf.DataTypeString(), value_type=item),
    ]


VALUES: dict[type[odf.DataType], tuple[Any, Any]] = {
    odf.DataTypeUInt8: (255, 255),
    odf.DataTypeUInt16: (65_535, 65_535),
    odf.DataTypeUInt32: (2**32 - 1, 2**32 - 1),
    odf.DataTypeUInt64: (2**64 - 1, Decimal(2**64 - 1)),
    odf.DataTypeFloat16: (0.5, 0.5),
    odf.DataTypeDuration: (timedelta(milliseconds=7), 7),
    odf.DataTypeNull: (None, None),
    odf.DataTypeDecimal: (Decimal("1" * 38 + ".5"), "1" * 38 + ".5"),
}
"""Values, and what readers get of them."""


def value_of(kind: odf.DataType) -> tuple[Any, Any]:
    match kind:
        case odf.DataTypeTime(unit=UNITS.NANOSECOND):
            return time(0, 0, 1, 2), 1_000_002_000
        case odf.DataTypeTime():
            return time(0, 0, 1), time(0, 0, 1)
        case odf.DataTypeTimestamp(unit=UNITS.NANOSECOND):
            return datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC), 1_000_002_000
        case odf.DataTypeTimestamp():
            return datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)
    return VALUES[type(kind)]


def inside(kind: odf.DataType, value: Any) -> Any:
    match kind:
        case odf.DataTypeList():
            return [value]
        case odf.DataTypeStruct():
            return {"a": value}
        case odf.DataTypeMap():
            return [("k", value)]
    return value


@pytest.mark.parametrize(("kind", "expected"), TURNED, ids=str)
def test_type_that_iceberg_lacks_is_given_in_another_without_rounding_iceberg_12(
    kind: odf.DataType, expected: str, tmp_path: Path
) -> None:
    assert columns_of(schema_of(a=kind), ColumnIds())[-1]["type"] == expected
    given, got = value_of(kind)
    for each in around(kind):
        schema = odf.DataSchema(fields=(odf.DataField(name="a", type=optional(each)),))
        assert not is_readable(schema)
        assert is_readable(readable_schema(schema))
        arrow = rows_schema_of(schema)
        path, target = tmp_path / "rows.parquet", io.BytesIO()
        pq.write_table(pa.table([pa.array([inside(each, given), None], arrow.field(0).type)], schema=arrow), path)
        with SliceProcess() as reader:
            reader.write_in_columns(path, readable_schema(schema), target)
        assert pq.read_table(target).to_pylist() == [{"a": inside(each, got)}, {"a": None}]


@pytest.mark.parametrize(("kind", "_expected"), SHOWN, ids=str)
def test_rows_of_other_types_are_read_as_they_are_iceberg_12(kind: odf.DataType, _expected: str) -> None:
    assert all(is_readable(schema_of(a=optional(each))) for each in around(kind))


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
    before, after = ids_in(first), ids_in(second)
    assert len(set(before)) == len(before)
    assert len(set(after)) == len(after)
    assert set(before) < set(after)
    assert max(after) == ids.last
    assert sorted(ids_in(json.loads(name_mapping_of(schema, ids)))) == sorted(after)
    for columns in (first, second):
        Schema.model_validate({"type": "struct", "schema-id": 0, "fields": list(columns)})


def test_columns_that_a_table_leaves_out_have_an_id_all_the_same_iceberg_9() -> None:
    schema = schema_of(city=odf.DataTypeString())
    all_columns, some = (columns_of(schema, ColumnIds(), left_out) for left_out in ((), ("offset", "op")))
    assert [each for each in all_columns if each["name"] not in ("offset", "op")] == list(some)
