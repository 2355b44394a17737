"""Which schema may follow which, and which rows fit a dataset."""

import pytest
from hypothesis import given

from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeDecimal,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    ExtraAttributes,
    TimeUnit,
)
from odf_protocol.events.equality import with_defaults
from odf_protocol.schema_compat import (
    describe_type,
    find_incompatibility,
    find_slice_incompatibility,
    is_same,
)
from support.events import data_schemas, data_types

INT, LONG, TEXT = DataTypeInt32(), DataTypeInt64(), DataTypeString()


def option(inner: DataType) -> DataType:
    return DataTypeOption(inner=inner)


def listed(item: DataType, length: int | None = None) -> DataType:
    return DataTypeList(item_type=item, fixed_length=length)


def fields(**types: DataType) -> tuple[DataField, ...]:
    return tuple(DataField(name=name, type=data_type) for name, data_type in types.items())


def struct(**types: DataType) -> DataType:
    return DataTypeStruct(fields=fields(**types))


def mapped(key: DataType, value: DataType, keys_sorted: bool | None = None) -> DataType:
    return DataTypeMap(key_type=key, value_type=value, keys_sorted=keys_sorted)


def schema(**types: DataType) -> DataSchema:
    return DataSchema(fields=fields(**types))


MS_UTC = DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC")

ALLOWED = {
    "same": (schema(a=INT), schema(a=INT)),
    "order": (schema(a=INT, b=TEXT), schema(b=TEXT, a=INT)),
    "optional-field": (schema(a=INT), schema(a=INT, b=option(TEXT))),
    "optional-field-first": (schema(a=INT), schema(b=option(TEXT), a=INT)),
    "optional-field-in-struct": (schema(s=struct(a=INT)), schema(s=struct(a=INT, b=option(INT)))),
    "optional-field-in-struct-in-list": (
        schema(s=option(listed(option(struct(a=INT))))),
        schema(s=option(listed(option(struct(b=option(INT), a=INT))))),
    ),
    "default-written-out": (schema(t=DataTypeTimestamp()), schema(t=MS_UTC)),
    "default-left-out": (
        schema(t=option(listed(DataTypeTime(unit=TimeUnit.MILLISECOND)))),
        schema(t=option(listed(DataTypeTime()))),
    ),
}

FORBIDDEN = {
    "removed": (schema(a=INT, b=INT), schema(a=INT), "field b was removed"),
    "renamed": (schema(a=INT), schema(b=option(INT)), "field a was removed"),
    "type": (schema(a=INT), schema(a=LONG), "field a changed its type from Int32 to Int64"),
    "optional": (schema(a=INT), schema(a=option(INT)), "field a became optional"),
    "required": (schema(a=option(INT)), schema(a=INT), "field a became required"),
    "required-field": (
        schema(a=INT),
        schema(a=INT, b=TEXT),
        "field b was added as required; a new field has to be optional",
    ),
    "removed-in-struct": (schema(s=struct(a=INT, b=INT)), schema(s=struct(a=INT)), "field s.b was removed"),
    "required-in-struct": (schema(s=struct(a=INT)), schema(s=struct(a=INT, b=INT)), "field s.b was added as required"),
    "item": (schema(a=listed(INT)), schema(a=listed(LONG)), "field a[] changed its type from Int32 to Int64"),
    "optional-item": (schema(a=listed(INT)), schema(a=listed(option(INT))), "field a[] became optional"),
    "list-length": (
        schema(a=listed(INT, 2)),
        schema(a=listed(INT, 3)),
        "changed its type from List<Int32, 2> to List<Int32, 3>",
    ),
    "unit": (
        schema(t=MS_UTC),
        schema(t=DataTypeTimestamp(unit=TimeUnit.SECOND)),
        "from Timestamp(Millisecond, UTC) to Timestamp(Second, UTC)",
    ),
    "zone": (schema(t=MS_UTC), schema(t=DataTypeTimestamp(timezone="CET")), "to Timestamp(Millisecond, CET)"),
    "map-value": (
        schema(m=mapped(TEXT, INT)),
        schema(m=mapped(TEXT, LONG)),
        "from Map<String, Int32> to Map<String, Int64>",
    ),
    "map-of-structs": (
        schema(m=mapped(TEXT, struct(a=INT))),
        schema(m=mapped(TEXT, struct(a=INT, b=option(INT)))),
        "changed its type",
    ),
    "decimal": (
        schema(d=DataTypeDecimal(precision=5, scale=2)),
        schema(d=DataTypeDecimal(precision=6, scale=2)),
        "from Decimal(5, 2) to Decimal(6, 2)",
    ),
    "bytes": (schema(b=DataTypeBinary()), schema(b=DataTypeBinary(fixed_length=4)), "from Binary to Binary(4)"),
    "twice": (schema(a=INT), DataSchema(fields=fields(a=INT) * 2), "the schema names a field twice"),
}


@pytest.mark.parametrize(("previous", "new"), ALLOWED.values(), ids=ALLOWED.keys())
def test_change_that_keeps_old_rows_readable_is_allowed(previous, new):
    assert find_incompatibility(previous, new) is None


@pytest.mark.parametrize(("previous", "new", "reason"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_change_that_breaks_readers_is_named(previous, new, reason):
    assert reason in (find_incompatibility(previous, new) or "")


@pytest.mark.parametrize(
    ("previous", "new"),
    [
        (schema(a=INT), schema(a=option(INT))),
        (schema(a=option(INT)), schema(a=INT)),
        (schema(a=listed(option(struct(b=INT)))), schema(a=option(listed(struct(b=option(INT)))))),
        (schema(a=INT), schema(a=INT, b=INT)),
    ],
    ids=["became-optional", "became-required", "nested", "added"],
)
def test_optionality_cannot_change(previous, new):
    assert find_incompatibility(previous, new) is not None


def with_extra(text: str | None) -> DataSchema:
    extra = None if text is None else ExtraAttributes(entries=text)
    return DataSchema(fields=(DataField(name="a", type=struct(b=INT), extra=extra),), extra=extra)


def test_attributes_may_change_but_make_another_schema():
    before, after = with_extra('{"a":1}'), with_extra('{"a":2}')
    assert find_incompatibility(before, after) is None
    assert not is_same(before, after)
    assert not is_same(before, with_extra(None))


def test_attributes_are_the_same_in_any_order_of_keys():
    assert is_same(with_extra('{"a":1,"b":2}'), with_extra('{ "b": 2, "a": 1 }'))


def test_same_knows_defaults_and_order():
    assert is_same(schema(t=DataTypeTimestamp()), schema(t=MS_UTC))
    assert not is_same(schema(a=INT, b=INT), schema(b=INT, a=INT))
    assert not is_same(schema(a=INT), schema(a=option(INT)))


@given(data_schemas())
def test_schema_is_the_same_as_itself(data_schema):
    assert is_same(data_schema, data_schema)


@given(data_types())
def test_defaults_are_described_as_if_they_were_written_out(data_type):
    assert describe_type(with_defaults(data_type)) == describe_type(data_type)


FITTING = {
    "same": (schema(a=INT), schema(a=INT)),
    "required-where-optional": (schema(a=option(INT)), schema(a=INT)),
    "required-item": (schema(a=listed(option(INT))), schema(a=listed(INT))),
    "defaults": (schema(t=MS_UTC), schema(t=DataTypeTimestamp())),
}

MISFITS = {
    "missing": (schema(a=INT, b=INT), schema(a=INT), "column b is missing"),
    "added": (schema(a=INT), schema(a=INT, b=INT), "column b is not in the dataset's schema"),
    "order": (schema(a=INT, b=INT), schema(b=INT, a=INT), "columns are in another order: expected a, b; found b, a"),
    "nulls": (schema(a=INT), schema(a=option(INT)), "column a may hold nulls and the dataset requires values"),
    "type": (schema(a=option(INT)), schema(a=LONG), "column a is Int64 and the dataset has Int32"),
    "item": (schema(a=listed(INT)), schema(a=listed(option(INT))), "column a[] may hold nulls"),
    "list-length": (
        schema(a=listed(INT)),
        schema(a=listed(INT, 2)),
        "column a is List<Int32, 2> and the dataset has List<Int32>",
    ),
    "struct-field": (schema(s=struct(a=INT)), schema(s=struct(b=INT)), "column a is missing (inside s)"),
    "map-value": (schema(m=mapped(TEXT, INT)), schema(m=mapped(TEXT, option(INT))), "column m (values) may hold nulls"),
    "map-key": (schema(m=mapped(TEXT, INT)), schema(m=mapped(INT, INT)), "column m (keys) is Int32"),
    "map-order": (
        schema(m=mapped(TEXT, INT, True)),
        schema(m=mapped(TEXT, INT, False)),
        "column m is Map<String, Int32>",
    ),
}


@pytest.mark.parametrize(("dataset", "data"), FITTING.values(), ids=FITTING.keys())
def test_rows_of_the_same_types_fit(dataset, data):
    assert find_slice_incompatibility(dataset, data) is None


@pytest.mark.parametrize(("dataset", "data", "reason"), MISFITS.values(), ids=MISFITS.keys())
def test_rows_that_do_not_fit_are_explained(dataset, data, reason):
    assert reason in (find_slice_incompatibility(dataset, data) or "")
