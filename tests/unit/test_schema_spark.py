"""ODF's types under Spark's names, and Spark's schemas as ODF's."""

import pytest

from odf_protocol import events as odf
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.schema_spark import parse_spark_schema, quote_spark_name, spark_columns_of, spark_type_of

INT, TEXT = odf.DataTypeInt32(), odf.DataTypeString()


def option(inner: odf.DataType) -> odf.DataType:
    return odf.DataTypeOption(inner=inner)


NAMES: dict[str, tuple[odf.DataType, str]] = {
    "bool": (odf.DataTypeBool(), "BOOLEAN"),
    "int8": (odf.DataTypeInt8(), "TINYINT"),
    "int16": (odf.DataTypeInt16(), "SMALLINT"),
    "int32": (INT, "INT"),
    "int64": (odf.DataTypeInt64(), "BIGINT"),
    "uint8": (odf.DataTypeUInt8(), "SMALLINT"),
    "uint16": (odf.DataTypeUInt16(), "INT"),
    "uint32": (odf.DataTypeUInt32(), "BIGINT"),
    "uint64": (odf.DataTypeUInt64(), "DECIMAL(20,0)"),
    "float32": (odf.DataTypeFloat32(), "FLOAT"),
    "float64": (odf.DataTypeFloat64(), "DOUBLE"),
    "string": (TEXT, "STRING"),
    "binary": (odf.DataTypeBinary(), "BINARY"),
    "fixed-binary": (odf.DataTypeBinary(fixed_length=4), "BINARY"),
    "date": (odf.DataTypeDate(), "DATE"),
    "null": (odf.DataTypeNull(), "VOID"),
    "decimal": (odf.DataTypeDecimal(precision=38, scale=38), "DECIMAL(38,38)"),
    "timestamp": (odf.DataTypeTimestamp(), "TIMESTAMP"),
    "timestamp-s": (odf.DataTypeTimestamp(unit=odf.TimeUnit.SECOND, timezone="CET"), "TIMESTAMP"),
    "option": (option(INT), "INT"),
    "list": (odf.DataTypeList(item_type=option(odf.DataTypeList(item_type=TEXT))), "ARRAY<ARRAY<STRING>>"),
    "map": (odf.DataTypeMap(key_type=TEXT, value_type=option(INT)), "MAP<STRING, INT>"),
    "struct": (
        odf.DataTypeStruct(fields=(odf.DataField(name="a b", type=INT), odf.DataField(name="x`y", type=option(TEXT)))),
        "STRUCT<`a b`: INT NOT NULL, `x``y`: STRING>",
    ),
}


@pytest.mark.parametrize(("data_type", "name"), NAMES.values(), ids=NAMES.keys())
def test_type_has_a_name_in_spark(data_type, name):
    assert spark_type_of(data_type) == name


REJECTED: dict[str, tuple[odf.DataType, str]] = {
    "time": (odf.DataTypeTime(), "Time(Millisecond)"),
    "duration": (odf.DataTypeDuration(unit=odf.TimeUnit.SECOND), "Duration(Second)"),
    "float16": (odf.DataTypeFloat16(), "Float16"),
    "nanoseconds": (
        odf.DataTypeTimestamp(unit=odf.TimeUnit.NANOSECOND),
        "Timestamp(Nanosecond, UTC) (supported: timestamps of up to",
    ),
    "wide-decimal": (
        odf.DataTypeDecimal(precision=39, scale=0),
        "Decimal(39, 0) (supported: decimals of up to 38 digits)",
    ),
    "negative-scale": (odf.DataTypeDecimal(precision=5, scale=-1), "Decimal(5, -1)"),
}


@pytest.mark.parametrize(("data_type", "reason"), REJECTED.values(), ids=REJECTED.keys())
def test_type_that_spark_cannot_hold_is_rejected_with_the_column(data_type, reason):
    struct = odf.DataTypeStruct(
        fields=(odf.DataField(name="b", type=option(odf.DataTypeList(item_type=option(data_type)))),)
    )
    with pytest.raises(UnsupportedError) as caught:
        spark_columns_of(odf.DataSchema(fields=(odf.DataField(name="a", type=struct),)))
    assert str(caught.value).startswith(f"unsupported type in Spark of column a.b[]: {reason}")


def test_map_names_its_side_in_a_rejection():
    with pytest.raises(UnsupportedError, match=r"column m \(keys\): Float16"):
        spark_type_of(odf.DataTypeMap(key_type=odf.DataTypeFloat16(), value_type=INT), column="m")
    with pytest.raises(UnsupportedError, match=r"unsupported type in Spark: Float16"):
        spark_type_of(odf.DataTypeFloat16())


def test_columns_state_which_are_required():
    schema = odf.DataSchema(
        fields=(odf.DataField(name="offset", type=odf.DataTypeInt64()), odf.DataField(name="city", type=option(TEXT)))
    )
    assert spark_columns_of(schema) == "`offset` BIGINT NOT NULL, `city` STRING"


@pytest.mark.parametrize(("name", "quoted"), [("a", "`a`"), ("a`b", "`a``b`"), ("a; DROP", "`a; DROP`"), ("", "``")])
def test_quoted_name_cannot_end_early(name, quoted):
    assert quote_spark_name(name) == quoted


def schema_text(data_type: str, nullable: str = "true") -> str:
    return f'{{"type":"struct","fields":[{{"name":"x","type":{data_type},"nullable":{nullable},"metadata":{{}}}}]}}'


OF_SPARK: dict[str, tuple[str, odf.DataType]] = {
    "boolean": ('"boolean"', odf.DataTypeBool()),
    "byte": ('"byte"', odf.DataTypeInt8()),
    "short": ('"short"', odf.DataTypeInt16()),
    "integer": ('"integer"', INT),
    "long": ('"long"', odf.DataTypeInt64()),
    "float": ('"float"', odf.DataTypeFloat32()),
    "double": ('"double"', odf.DataTypeFloat64()),
    "string": ('"string"', TEXT),
    "binary": ('"binary"', odf.DataTypeBinary()),
    "date": ('"date"', odf.DataTypeDate()),
    "timestamp": ('"timestamp"', odf.DataTypeTimestamp(unit=odf.TimeUnit.MILLISECOND, timezone="UTC")),
    "timestamp-ntz": ('"timestamp_ntz"', odf.DataTypeTimestamp(unit=odf.TimeUnit.MILLISECOND, timezone="UTC")),
    "decimal": ('"decimal(20,0)"', odf.DataTypeDecimal(precision=20, scale=0)),
    "array": ('{"type":"array","elementType":"integer","containsNull":true}', odf.DataTypeList(item_type=option(INT))),
    "array-of-required": (
        '{"type":"array","elementType":"integer","containsNull":false}',
        odf.DataTypeList(item_type=INT),
    ),
    "map": (
        '{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":true}',
        odf.DataTypeMap(key_type=TEXT, value_type=option(INT), keys_sorted=False),
    ),
    "struct": (
        '{"type":"struct","fields":[{"name":"a b","type":"integer","nullable":false,"metadata":{}}]}',
        odf.DataTypeStruct(fields=(odf.DataField(name="a b", type=INT),)),
    ),
}


@pytest.mark.parametrize("nullable", [True, False], ids=["optional", "required"])
@pytest.mark.parametrize(("spark", "data_type"), OF_SPARK.values(), ids=OF_SPARK.keys())
def test_spark_schema_becomes_odf_types(spark, data_type, nullable):
    expected = odf.DataSchema(fields=(odf.DataField(name="x", type=option(data_type) if nullable else data_type),))
    assert parse_spark_schema(schema_text(spark, str(nullable).lower())) == expected


@pytest.mark.parametrize(
    ("spark", "reason"),
    [
        ('"void"', "Spark type of column x: void (supported: a cast, as nulls alone have no type)"),
        ('"interval day to second"', "Spark type of column x: interval day to second"),
        ('{"type":"udt","class":"x"}', "Spark type of column x: udt"),
        ('{"type":"array","elementType":"variant","containsNull":true}', "Spark type of column x[]: variant"),
        ("null", "Spark type of column x"),
    ],
)
def test_spark_type_without_counterpart_is_rejected_with_the_column(spark, reason):
    with pytest.raises(UnsupportedError) as caught:
        parse_spark_schema(schema_text(spark))
    assert str(caught.value).startswith(f"unsupported {reason}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '"integer"',
        '{"type":"struct","fields":[1]}',
        '{"type":"struct","fields":[{"name":"x"}]}',
        "[" * 100_000,
    ],
)
def test_text_that_is_no_spark_schema_is_rejected(text):
    with pytest.raises(MalformedError, match="malformed Spark schema"):
        parse_spark_schema(text)


def test_nesting_of_a_spark_schema_is_bounded():
    nested = '{"type":"array","containsNull":true,"elementType":' * 80 + '"integer"' + "}" * 80
    with pytest.raises(UnsupportedError, match="more than 64 levels"):
        parse_spark_schema(schema_text(nested))
