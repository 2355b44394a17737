# ruff: noqa: E501 -- messages are compared as the one line they are
"""Column definitions become ODF types; mistakes are placed by entry and character. The table itself is in conformance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_protocol import schema_ddl
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeDecimal,
    DataTypeInt32,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
)
from odf_protocol.schema_ddl import DdlError, UnsupportedDdlError, parse_ddl

OPTIONAL_INT = DataTypeOption(inner=DataTypeInt32())
OPTIONAL_STRING = DataTypeOption(inner=DataTypeString())


def test_columns_keep_names_and_order():
    assert parse_ddl(
        ["b INT", '"A ""q"" b" string not null', "", "`c`` d` DECIMAL(10, 2), e ARRAY<ARRAY<TEXT>>"]
    ) == DataSchema(
        fields=(
            DataField(name="b", type=OPTIONAL_INT),
            DataField(name='A "q" b', type=DataTypeString()),
            DataField(name="c` d", type=DataTypeDecimal(precision=10, scale=2)),
            DataField(
                name="e",
                type=DataTypeOption(
                    inner=DataTypeList(item_type=DataTypeOption(inner=DataTypeList(item_type=OPTIONAL_STRING)))
                ),
            ),
        )
    )


def test_dates_and_decimals_are_required_where_all_else_is_optional():
    """As the reference reads them, so a manifest means the same columns everywhere."""
    fields = parse_ddl(["a DATE", "b DECIMAL(10, 2)", "c TIMESTAMP", "d DOUBLE"]).fields
    assert [isinstance(field.type, DataTypeOption) for field in fields] == [False, False, True, True]


def test_nothing_is_an_empty_schema():
    assert parse_ddl([]) == parse_ddl(["", "  "]) == DataSchema(fields=())


MALFORMED = {
    "colon": (["a INT", "b: INT"], 1, 1, "expected a word, a number, quotes or one of ( ) , < >, found ': INT'"),
    "no-type": (["a"], 0, 1, "expected a type, found the end"),
    "number-as-type": (["a 1"], 0, 2, "expected a type, found '1'"),
    "number-as-name": (["1a INT"], 0, 0, "expected a word, a number"),
    "reserved": (["key INT"], 0, 0, "expected a column name; in quotes it would be one, found 'key'"),
    "empty-name": (['"" INT'], 0, 0, "expected a column name, found ''"),
    "twice": (["a INT", "b INT, a INT"], 1, 7, "expected each column once, found 'a' again"),
    "last-comma": (["a INT,"], 0, 6, "expected a column name, found the end"),
    "null-alone": (["a INT NULL"], 0, 6, "expected ',', 'NOT NULL' or the end, found 'NULL'"),
    "not-alone": (["a INT NOT"], 0, 9, "expected 'NULL', found the end"),
    "default": (["a INT DEFAULT 1"], 0, 6, "expected ',', 'NOT NULL' or the end, found 'DEFAULT'"),
    "unclosed-array": (["a ARRAY<INT"], 0, 11, "expected '>', found the end"),
    "array-of-nothing": (["a ARRAY"], 0, 7, "expected '<', found the end"),
    "required-item": (["a ARRAY<INT NOT NULL>"], 0, 12, "expected '>', found 'NOT'"),
    "decimal-alone": (["a DECIMAL"], 0, 9, "expected 2 numbers in parentheses after DECIMAL, found 0"),
    "decimal-of-text": (["a DECIMAL(x)"], 0, 10, "expected a number, found 'x'"),
    "decimal-unclosed": (["a DECIMAL(1 2)"], 0, 12, "expected ',' or ')', found '2'"),
    "decimal-too-wide": (
        ["a DECIMAL(77,0)"],
        0,
        9,
        "expected a precision from 1 to 76 and a scale up to it, found (77, 0)",
    ),
    "scale-beyond-precision": (["a DECIMAL(2,3)"], 0, 9, "found (2, 3)"),
    "huge-number": (["a DECIMAL(99999999999999999999,0)"], 0, 10, "expected a word, a number"),
    "text-with-length": (["a TEXT(10)"], 0, 6, "expected 0 numbers in parentheses after TEXT, found 1"),
    "half-a-zone": (["a TIMESTAMP WITH ZONE"], 0, 17, "expected 'TIME', found 'ZONE'"),
    "unclosed-quote": (['"a INT'], 0, 0, "expected a word, a number, quotes or one of"),
}


@pytest.mark.parametrize(("ddl", "entry", "position", "expected"), MALFORMED.values(), ids=MALFORMED.keys())
def test_mistake_is_placed_by_entry_and_character(ddl, entry, position, expected):
    with pytest.raises(DdlError) as caught:
        parse_ddl(ddl)
    assert (caught.value.entry, caught.value.position) == (entry, position)
    assert isinstance(caught.value, MalformedError)
    assert f"malformed ddlSchema at column definition {entry + 1}, character {position + 1}: " in str(caught.value)
    assert expected in str(caught.value)


UNSUPPORTED = {
    "smallint": ("a SMALLINT", 2, "SMALLINT (supported: INT, or 'schema' with Int16)"),
    "typo": ("a STRNG", 2, "STRNG (supported: STRING)"),
    "item": ("a ARRAY<UUID>", 8, "UUID (supported: BOOL, INT, BIGINT"),
    "precision": ("a DOUBLE PRECISION", 9, "PRECISION (supported: DOUBLE without it)"),
    "struct": ("a STRUCT<b INT>", 2, "STRUCT (supported: 'schema' with Struct)"),
}


@pytest.mark.parametrize(("ddl", "position", "expected"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_type_outside_the_dialect_is_rejected_with_a_way_out(ddl, position, expected):
    with pytest.raises(UnsupportedDdlError) as caught:
        parse_ddl([ddl])
    assert (caught.value.entry, caught.value.position) == (0, position)
    assert isinstance(caught.value, UnsupportedError)
    start = f"unsupported SQL type in ddlSchema at column definition 1, character {position + 1}: "
    assert str(caught.value).startswith(start + expected)


def test_columns_nesting_and_length_are_bounded(monkeypatch):
    deep = "ARRAY<" * 1000 + "INT" + ">" * 1000
    with pytest.raises(DdlError, match="at most 16 levels of ARRAY"):
        parse_ddl([f"a {deep}"])
    with pytest.raises(DdlError, match="at most 100000 characters"):
        parse_ddl(["a" * 100_001])
    monkeypatch.setattr(schema_ddl, "MAX_COLUMNS", 2)
    with pytest.raises(DdlError, match="column definition 3, character 1: expected at most 2 columns, found more"):
        parse_ddl(["a INT", "b INT", "c INT"])


@given(st.lists(st.text('aINT "`(),<>09ARYDECML', max_size=30), max_size=3))
def test_any_text_is_read_or_rejected(ddl):
    try:
        schema = parse_ddl(ddl)
    except (DdlError, UnsupportedDdlError):
        return
    assert len({field.name for field in schema.fields}) == len(schema.fields)
