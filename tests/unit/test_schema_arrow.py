# ruff: noqa: E501 -- a case a line
"""ODF's types as Arrow's and back: every type, every layout, and what has no counterpart."""

import pyarrow as pa
import pytest
from hypothesis import given

from odf_protocol import events as odf
from odf_protocol.errors import UnsupportedError
from odf_protocol.schema_arrow import (
    arrow_schema_of,
    arrow_type_of,
    data_schema_of,
    data_schema_with_encodings_of,
    strip_encodings,
)
from odf_protocol.schema_compat import is_same
from support.events import data_schemas

INT, TEXT = odf.DataTypeInt32(), odf.DataTypeString()
S, MS, US, NS = odf.TimeUnit.SECOND, odf.TimeUnit.MILLISECOND, odf.TimeUnit.MICROSECOND, odf.TimeUnit.NANOSECOND
ITEM = pa.field("item", pa.int32(), nullable=False)


def option(inner: odf.DataType) -> odf.DataType:
    return odf.DataTypeOption(inner=inner)


BOTH_WAYS: dict[str, tuple[odf.DataType, pa.DataType]] = {
    "bool": (odf.DataTypeBool(), pa.bool_()),
    "int8": (odf.DataTypeInt8(), pa.int8()),
    "int16": (odf.DataTypeInt16(), pa.int16()),
    "int32": (odf.DataTypeInt32(), pa.int32()),
    "int64": (odf.DataTypeInt64(), pa.int64()),
    "uint8": (odf.DataTypeUInt8(), pa.uint8()),
    "uint16": (odf.DataTypeUInt16(), pa.uint16()),
    "uint32": (odf.DataTypeUInt32(), pa.uint32()),
    "uint64": (odf.DataTypeUInt64(), pa.uint64()),
    "float16": (odf.DataTypeFloat16(), pa.float16()),
    "float32": (odf.DataTypeFloat32(), pa.float32()),
    "float64": (odf.DataTypeFloat64(), pa.float64()),
    "string": (TEXT, pa.string()),
    "binary": (odf.DataTypeBinary(), pa.binary()),
    "fixed-binary": (odf.DataTypeBinary(fixed_length=4), pa.binary(4)),
    "date": (odf.DataTypeDate(), pa.date32()),
    "time-s": (odf.DataTypeTime(unit=S), pa.time32("s")),
    "time-ms": (odf.DataTypeTime(unit=MS), pa.time32("ms")),
    "time-us": (odf.DataTypeTime(unit=US), pa.time64("us")),
    "time-ns": (odf.DataTypeTime(unit=NS), pa.time64("ns")),
    "timestamp": (odf.DataTypeTimestamp(unit=MS, timezone="UTC"), pa.timestamp("ms", "UTC")),
    "timestamp-zone": (odf.DataTypeTimestamp(unit=NS, timezone="+02:00"), pa.timestamp("ns", "+02:00")),
    "duration": (odf.DataTypeDuration(unit=US), pa.duration("us")),
    "decimal": (odf.DataTypeDecimal(precision=38, scale=10), pa.decimal128(38, 10)),
    "wide-decimal": (odf.DataTypeDecimal(precision=39, scale=0), pa.decimal256(39, 0)),
    "negative-scale": (odf.DataTypeDecimal(precision=5, scale=-2), pa.decimal128(5, -2)),
    "list": (odf.DataTypeList(item_type=INT), pa.list_(ITEM)),
    "list-of-optional": (odf.DataTypeList(item_type=option(INT)), pa.list_(pa.field("item", pa.int32()))),
    "fixed-list": (odf.DataTypeList(item_type=INT, fixed_length=3), pa.list_(ITEM, 3)),
    "struct": (
        odf.DataTypeStruct(fields=(odf.DataField(name="a", type=INT), odf.DataField(name="b", type=option(TEXT)))),
        pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())]),
    ),
    "map": (
        odf.DataTypeMap(key_type=TEXT, value_type=option(INT), keys_sorted=True),
        pa.map_(pa.field("keys", pa.string(), nullable=False), pa.field("values", pa.int32()), keys_sorted=True),
    ),
}


@pytest.mark.parametrize("nullable", [False, True], ids=["required", "optional"])
@pytest.mark.parametrize(("data_type", "arrow_type"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_type_has_one_counterpart(data_type, arrow_type, nullable):
    schema = odf.DataSchema(fields=(odf.DataField(name="x", type=option(data_type) if nullable else data_type),))
    arrow = pa.schema([pa.field("x", arrow_type, nullable=nullable)])
    assert arrow_schema_of(schema).equals(arrow, check_metadata=True)
    assert data_schema_of(arrow) == schema


LAYOUTS: dict[str, tuple[pa.DataType, odf.DataType, dict[str, object]]] = {
    "large-string": (pa.large_string(), TEXT, {"bufferEncoding": {"kind": "Contiguous", "offsetBitWidth": 64}}),
    "string-view": (pa.string_view(), TEXT, {"bufferEncoding": {"kind": "View", "offsetBitWidth": 32}}),
    "string": (pa.string(), TEXT, {"bufferEncoding": {"kind": "Contiguous", "offsetBitWidth": 32}}),
    "large-binary": (pa.large_binary(), odf.DataTypeBinary(), {"bufferEncoding": {"kind": "Contiguous", "offsetBitWidth": 64}}),
    "binary-view": (pa.binary_view(), odf.DataTypeBinary(), {"bufferEncoding": {"kind": "View", "offsetBitWidth": 32}}),
    "large-list": (pa.large_list(ITEM), odf.DataTypeList(item_type=INT), {"bufferEncoding": {"kind": "Contiguous", "offsetBitWidth": 64}}),
    "list-view": (pa.list_view(ITEM), odf.DataTypeList(item_type=INT), {"bufferEncoding": {"kind": "View", "offsetBitWidth": 32}}),
    "large-list-view": (pa.large_list_view(ITEM), odf.DataTypeList(item_type=INT), {"bufferEncoding": {"kind": "View", "offsetBitWidth": 64}}),
    "date64": (pa.date64(), odf.DataTypeDate(), {"dateEncoding": {"unit": "Millisecond"}}),
    "decimal32": (pa.decimal32(7, 2), odf.DataTypeDecimal(precision=7, scale=2), {"decimalEncoding": {"bitWidth": 32}}),
    "decimal64": (pa.decimal64(9, 2), odf.DataTypeDecimal(precision=9, scale=2), {"decimalEncoding": {"bitWidth": 64}}),
    "decimal256": (pa.decimal256(9, 2), odf.DataTypeDecimal(precision=9, scale=2), {"decimalEncoding": {"bitWidth": 256}}),
    "run-ends": (pa.run_end_encoded(pa.int16(), pa.int32()), INT, {"bufferEncoding": {"kind": "RunEnd", "runEndsBitWidth": 16}}),
}  # fmt: skip


@pytest.mark.parametrize(("arrow_type", "data_type", "layout"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layout_is_kept_beside_the_type_and_left_out_of_blocks(arrow_type, data_type, layout):
    arrow = pa.schema([pa.field("x", arrow_type, nullable=False)])
    extra = odf.ExtraAttributes.of({f"arrow.apache.org/{name}": value for name, value in layout.items()})
    with_layout = data_schema_with_encodings_of(arrow)
    assert with_layout == odf.DataSchema(fields=(odf.DataField(name="x", type=data_type, extra=extra),))
    assert arrow_schema_of(with_layout) == arrow
    assert data_schema_of(arrow) == odf.DataSchema(fields=(odf.DataField(name="x", type=data_type),))


def test_nulls_alone_are_optional():
    schema = odf.DataSchema(fields=(odf.DataField(name="x", type=option(odf.DataTypeNull())),))
    assert arrow_schema_of(schema) == pa.schema([pa.field("x", pa.null())])
    assert data_schema_of(arrow_schema_of(schema)) == schema


def test_layouts_inside_structs_are_kept_and_stripped_too():
    arrow = pa.schema([pa.field("s", pa.struct([pa.field("a", pa.large_string())]))])
    with_layout = data_schema_with_encodings_of(arrow)
    assert arrow_schema_of(with_layout) == arrow
    assert strip_encodings(with_layout) == data_schema_of(arrow)
    assert "Encoding" not in repr(data_schema_of(arrow))


def test_other_attributes_survive_stripping():
    both = odf.ExtraAttributes.of(
        {"arrow.apache.org/dateEncoding": {"unit": "Day"}, "opendatafabric.org/description": "d"}
    )
    schema = odf.DataSchema(fields=(odf.DataField(name="x", type=odf.DataTypeDate(), extra=both),), extra=both)
    kept = odf.ExtraAttributes.of({"opendatafabric.org/description": "d"})
    assert strip_encodings(schema) == odf.DataSchema(
        fields=(odf.DataField(name="x", type=odf.DataTypeDate(), extra=kept),), extra=kept
    )


def test_metadata_and_item_names_of_arrow_mean_nothing():
    item = pa.field("element", pa.int32(), metadata={"a": "b"})
    plain = pa.schema([pa.field("x", pa.list_(pa.field("item", pa.int32())))])
    odd = pa.schema([pa.field("x", pa.list_(item), metadata={"c": "d"})], metadata={"e": "f"})
    assert data_schema_of(odd) == data_schema_of(plain)


def test_absent_units_and_zones_are_milliseconds_in_utc():
    assert arrow_type_of(odf.DataTypeTimestamp()) == pa.timestamp("ms", "UTC")
    assert arrow_type_of(odf.DataTypeTime()) == pa.time32("ms")
    assert arrow_type_of(odf.DataTypeDuration()) == pa.duration("ms")


def test_naive_timestamp_has_no_zone_and_reads_as_utc():
    schema = data_schema_of(pa.schema([pa.field("t", pa.timestamp("ms"))]))
    assert schema.fields[0].type == option(odf.DataTypeTimestamp(unit=MS, timezone=None))
    assert arrow_schema_of(schema).field("t").type == pa.timestamp("ms", "UTC")


NO_ODF_TYPE = {
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "interval": pa.month_day_nano_interval(),
    "union": pa.sparse_union([pa.field("a", pa.int32())]),
    "extension": pa.uuid(),
}


@pytest.mark.parametrize("arrow_type", NO_ODF_TYPE.values(), ids=NO_ODF_TYPE.keys())
def test_type_that_odf_lacks_is_rejected_with_the_column(arrow_type):
    nested = pa.struct([pa.field("b", pa.list_(pa.field("item", arrow_type)))])
    with pytest.raises(UnsupportedError) as caught:
        data_schema_of(pa.schema([pa.field("ok", pa.int8()), pa.field("a", nested)]))
    assert str(caught.value).startswith("unsupported Arrow type of column a.b[]: ")


NO_ARROW_TYPE = {
    "wide-decimal": (odf.DataTypeDecimal(precision=77, scale=0), "type in Arrow of column a.b: Decimal(77, 0)"),
    "no-digits": (odf.DataTypeDecimal(precision=0, scale=0), "type in Arrow of column a.b: Decimal(0, 0)"),
    "long-binary": (odf.DataTypeBinary(fixed_length=2**31), "type in Arrow of column a.b: Binary(2147483648)"),
    "long-list": (odf.DataTypeList(item_type=INT, fixed_length=2**63), "type in Arrow of column a.b: List<Int32"),
    "required-null": (odf.DataTypeNull(), "type in Arrow of column a.b: Null"),
    "option-of-option": (option(option(INT)), "type in Arrow of column a.b: Option<Option<Int32>>"),
    "optional-key": (odf.DataTypeMap(key_type=option(TEXT), value_type=INT), "type in Arrow of column a.b: Map<Option"),
    "empty-zone": (odf.DataTypeTimestamp(timezone=""), "type in Arrow of column a.b: Timestamp(Millisecond, )"),
}


@pytest.mark.parametrize(("data_type", "reason"), NO_ARROW_TYPE.values(), ids=NO_ARROW_TYPE.keys())
def test_type_that_arrow_lacks_is_rejected_with_the_column(data_type, reason):
    struct = odf.DataTypeStruct(fields=(odf.DataField(name="b", type=data_type),))
    with pytest.raises(UnsupportedError) as caught:
        arrow_schema_of(odf.DataSchema(fields=(odf.DataField(name="a", type=struct),)))
    assert str(caught.value).startswith(f"unsupported {reason}")


BAD_LAYOUTS = {
    "of-another-type": (INT, {"bufferEncoding": {"kind": "View", "offsetBitWidth": 32}}),
    "unknown-kind": (TEXT, {"bufferEncoding": {"kind": "Ropes", "offsetBitWidth": 32}}),
    "unknown-width": (TEXT, {"bufferEncoding": {"kind": "Contiguous", "offsetBitWidth": 16}}),
    "no-map": (TEXT, {"bufferEncoding": "View"}),
    "run-ends-of-8-bits": (TEXT, {"bufferEncoding": {"kind": "RunEnd", "runEndsBitWidth": 8}}),
    "unknown-date-unit": (odf.DataTypeDate(), {"dateEncoding": {"unit": "Year"}}),
    "date-of-text": (TEXT, {"dateEncoding": {"unit": "Day"}}),
    "narrow-decimal": (odf.DataTypeDecimal(precision=20, scale=2), {"decimalEncoding": {"bitWidth": 64}}),
    "odd-decimal": (odf.DataTypeDecimal(precision=5, scale=2), {"decimalEncoding": {"bitWidth": 65}}),
    "decimal-of-text": (TEXT, {"decimalEncoding": {"bitWidth": 128}}),
}


@pytest.mark.parametrize(("data_type", "layout"), BAD_LAYOUTS.values(), ids=BAD_LAYOUTS.keys())
def test_layout_that_the_type_cannot_have_is_rejected_with_the_column(data_type, layout):
    (name,) = layout
    extra = odf.ExtraAttributes.of({f"arrow.apache.org/{name}": layout[name]})
    with pytest.raises(UnsupportedError, match=f"unsupported attribute arrow.apache.org/{name} of column x"):
        arrow_schema_of(odf.DataSchema(fields=(odf.DataField(name="x", type=data_type, extra=extra),)))


def test_nesting_is_bounded():
    deep = pa.int32()
    for _ in range(100):
        deep = pa.list_(deep)
    with pytest.raises(UnsupportedError, match="more than 64 levels"):
        data_schema_of(pa.schema([pa.field("x", deep)]))


@given(data_schemas())
def test_schema_that_arrow_holds_comes_back_the_same(schema):
    schema = strip_encodings(schema)
    try:
        arrow = arrow_schema_of(schema)
    except UnsupportedError:
        return
    again = data_schema_of(arrow)
    assert arrow_schema_of(again) == arrow
    bare = _without_extras(schema)
    assert is_same(again, bare) or "keys_sorted=None" in repr(schema)


def _without_extras(schema: odf.DataSchema) -> odf.DataSchema:
    return odf.DataSchema(fields=tuple(odf.DataField(name=f.name, type=_bare(f.type)) for f in schema.fields))


def _bare(data_type: odf.DataType) -> odf.DataType:
    match data_type:
        case odf.DataTypeOption(inner=inner):
            return odf.DataTypeOption(inner=_bare(inner))
        case odf.DataTypeList(item_type=item, fixed_length=length):
            return odf.DataTypeList(item_type=_bare(item), fixed_length=length)
        case odf.DataTypeMap(key_type=key, value_type=value, keys_sorted=keys_sorted):
            return odf.DataTypeMap(key_type=_bare(key), value_type=_bare(value), keys_sorted=keys_sorted)
        case odf.DataTypeStruct(fields=fields):
            return odf.DataTypeStruct(fields=tuple(odf.DataField(name=f.name, type=_bare(f.type)) for f in fields))
    return data_type
