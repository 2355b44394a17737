"""Converters: each gives one value or says why not, wherever in a row it stands, and no row is lost (CONV)."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_engines.conversion.contract import Converted, Converter, Fault, ParameterError
from odf_engines.conversion.converted_rows import ConvertedRows, convert, make_converter
from odf_engines.ingest_parts import ConverterCall
from odf_engines.plug_in_names import CONVERTERS
from odf_engines.records.carriers import to_carrier
from odf_engines.records.source_records import RECORD, ROW_GROUP_ROWS, typed_schema, value_name
from odf_engines.validation.plug_ins import load_plug_in, parameter_schema
from odf_engines.validation.validated_rows import RowFile

REPOSITORY = Path(__file__).parents[4]


def call(kind: str | type, *, secret: str | None = None, **parameters: object) -> ConverterCall:
    place = CONVERTERS.find_place(kind) if isinstance(kind, str) else (__name__, kind.__name__)
    assert place is not None
    name = kind if isinstance(kind, str) else kind.__name__
    text = json.dumps(parameters)
    return ConverterCall(name=name, module=place[0], attribute=place[1], parameters=text, secret=secret)


def run(folder: Path, table: pa.Table, *calls: ConverterCall, group_rows: int = 1000) -> ConvertedRows:
    folder.mkdir(parents=True, exist_ok=True)
    values = [to_carrier(column.combine_chunks(), column.type) for column in table.columns]
    records = pa.array(range(1, table.num_rows + 1), pa.int64())
    carried = {RECORD: records} | {value_name(index): value for index, value in enumerate(values)}
    pq.write_table(pa.table(carried), folder / "rows.parquet", row_group_size=group_rows)
    return convert(RowFile(folder / "rows.parquet", RECORD, table.schema), calls, folder)


def good(found: ConvertedRows) -> list[dict[str, Any]]:
    assert pq.read_schema(found.path).equals(typed_schema(found.schema))
    rows = pq.read_table(found.path).to_pylist()
    return [{name: row[value_name(index)] for index, name in enumerate(found.schema.names)} for row in rows]


def bad(found: ConvertedRows) -> dict[int, list[tuple[str, str, str | None, str | None]]]:
    return {
        number: [(error.plug_in, error.code, error.column, error.value) for error in errors]
        for number, errors in found.iter_bad()
    }


def texts(**columns: list[str | None]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


CASTS = [
    ({"type": "BIGINT"}, "9223372036854775807", 2**63 - 1),
    ({"type": "BIGINT"}, "9223372036854775808", "misfit"),
    ({"type": "BIGINT"}, "1" * 5000, "misfit"),
    ({"type": "INT"}, "-2147483648", -(2**31)),
    ({"type": "INT"}, "2147483648", "misfit"),
    ({"type": "BIGINT UNSIGNED"}, "18446744073709551615", 2**64 - 1),
    ({"type": "INT UNSIGNED"}, "-1", "misfit"),
    ({"type": "INT"}, " 1", "form"),
    ({"type": "INT"}, "1,5", "form"),
    ({"type": "INT"}, "\u0661", "form"),
    ({"type": "INT", "thousands": "."}, "1.234.567", 1_234_567),
    ({"type": "INT", "thousands": "."}, "12.34", "form"),
    ({"type": "INT", "thousands": " "}, "1\u202f234\u00a0567", 1_234_567),
    ({"type": "DOUBLE", "decimal": ",", "thousands": "."}, "-1.234,5", -1234.5),
    ({"type": "DOUBLE", "decimal": ","}, "1.5", "form"),
    ({"type": "DOUBLE"}, "1e3", 1000.0),
    ({"type": "DOUBLE"}, "-Infinity", float("-inf")),
    ({"type": "DOUBLE"}, "1e999", "misfit"),
    ({"type": "FLOAT"}, "1e39", "misfit"),
    ({"type": "DECIMAL(5,2)", "decimal": ","}, "123,450", Decimal("123.45")),
    ({"type": "DECIMAL(5,2)", "decimal": ","}, "1,234", "misfit"),
    ({"type": "DECIMAL(5,2)"}, "1234", "misfit"),
    ({"type": "DECIMAL(2,2)"}, "-0.25", Decimal("-0.25")),
    ({"type": "DECIMAL(2,2)"}, ".25", "form"),
    ({"type": "DATE"}, "2020-02-29", date(2020, 2, 29)),
    ({"type": "DATE"}, "2021-02-29", "form"),
    ({"type": "DATE", "formats": ["%d.%m.%Y", "%Y/%m/%d", "rfc3339"]}, "2.9.2020", date(2020, 9, 2)),
    ({"type": "DATE", "formats": ["%d.%m.%Y", "%Y/%m/%d", "rfc3339"]}, "2020/9/2", date(2020, 9, 2)),
    ({"type": "DATE", "formats": ["%d.%m.%Y", "%Y/%m/%d", "rfc3339"]}, "2020-09-02", date(2020, 9, 2)),
    ({"type": "DATE", "formats": ["%d/%m/%Y", "%m/%d/%Y"]}, "09/13/2020", date(2020, 9, 13)),
    ({"type": "DATE", "formats": ["%d/%m/%Y", "%m/%d/%Y"]}, "13/13/2020", "form"),
    ({"type": "DATE", "formats": ["%d/%m/%y"]}, "01/02/69", date(1969, 2, 1)),
    ({"type": "TIMESTAMP"}, "2020-01-01T12:00:00.1239+02:00", datetime(2020, 1, 1, 10, 0, 0, 123000, UTC)),
    ({"type": "TIMESTAMP"}, "2020-01-01", datetime(2020, 1, 1, tzinfo=UTC)),
    ({"type": "TIMESTAMP"}, "2020-01-01T12:00", "form"),
    ({"type": "TIMESTAMP"}, "0001-01-01T00:00:00+01:00", "misfit"),
    ({"type": "TIMESTAMP"}, "2020-01-01T24:00:00Z", "form"),
    ({"type": "TIMESTAMP"}, "1969-12-31T23:59:59.9999Z", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    ({"type": "TIMESTAMP", "formats": ["%d.%m.%Y %H:%M"]}, "1.2.2020 3:04", datetime(2020, 2, 1, 3, 4, tzinfo=UTC)),
    ({"type": "BOOLEAN"}, "TRUE", True),
    ({"type": "BOOLEAN", "true": ["ja", "1"], "false": ["nein"]}, "Nein", False),
    ({"type": "BOOLEAN", "true": ["ja", "1"], "false": ["nein"]}, "true", "form"),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "text", "expected"), CASTS)
def test_text_denotes_one_value_or_is_bad(tmp_path: Path, parameters: dict, text: str, expected: object) -> None:
    found = run(tmp_path, texts(a=[text, None]), call("Cast", column="a", **parameters))
    if expected in ("form", "misfit") and isinstance(expected, str):
        assert bad(found) == {1: [("Cast", expected, "a", text[:200])]}
        assert good(found) == [{"a": None}]
    else:
        assert bad(found) == {}
        assert good(found) == [{"a": expected}, {"a": None}]


@pytest.mark.parametrize(
    ("kind", "parameters", "rows", "expected"),
    [
        ("Trim", {"columns": ["a"], "nulls": ["NA", "-"]}, {"a": ["  x ", "\u00a0NA", "", "na"]},
         [{"a": "x"}, {"a": None}, {"a": None}, {"a": "na"}]),
        ("Rename", {"columns": {"a": "b", "b": "a"}}, {"a": ["1"], "b": ["2"]}, [{"b": "1", "a": "2"}]),
        ("Split", {"column": "a", "separator": ", ", "into": ["x", "y"]}, {"a": ["p, q", ", q", None], "z": ["1"] * 3},
         [{"x": "p", "y": "q", "z": "1"}, {"x": None, "y": "q", "z": "1"}, {"x": None, "y": None, "z": "1"}]),
        ("Join", {"columns": ["b", "a"], "separator": " ", "into": "b"},
         {"a": ["1", None, None], "b": ["2", "2", None]},
         [{"b": "2 1"}, {"b": "2"}, {"b": None}]),
        ("Replace", {"column": "a", "values": {"UK": "GB"}}, {"a": ["UK", "FR", None]},
         [{"a": "GB"}, {"a": "FR"}, {"a": None}]),
        ("Replace", {"column": "a", "values": {"UK": "GB"}, "others": "Null"}, {"a": ["UK", "FR"]},
         [{"a": "GB"}, {"a": None}]),
        ("Mask", {"column": "a", "first": 2, "last": 2}, {"a": ["DE8937040044", "DE89", "é", None]},
         [{"a": "DE********44"}, {"a": "********"}, {"a": "********"}, {"a": None}]),
        ("JsonPath", {"column": "a", "path": "$.x[1].y", "into": "b"},
         {"a": ['{"x": [0, {"y": "p"}]}', '{"x": [0, {"y": 1.50}]}', '{"x": [0, {"y": [1, null]}]}', '{"x": {}}',
                '{"x": [0, {"y": null}]}', "3", f'{{"x": [0, {{"y": {10**40}}}]}}']},
         ["p", "1.50", "[1, null]", None, None, None, str(10**40)]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_converter_makes_rows_of(tmp_path: Path, kind: str, parameters: dict, rows: dict, expected: list) -> None:
    found = run(tmp_path, texts(**rows), call(kind, **parameters))
    assert bad(found) == {}
    if kind == "JsonPath":
        assert [row["b"] for row in good(found)] == expected
    else:
        assert good(found) == expected
        assert [*good(found)[0]] == [*expected[0]]


def test_figures_are_given_in_one_unit(tmp_path: Path) -> None:
    table = pa.table({"n": [2.0, 500.0, None, 1.0, 3.0], "u": ["kg", "g", None, "stone", None]})
    found = run(tmp_path, table, call("Units", column="n", unit="u", factors={"kg": "1", "g": "0.001"}))
    assert good(found) == [{"n": 2.0}, {"n": 0.5}, {"n": None}]
    assert bad(found) == {4: [("Units", "unit", "u", "stone")], 5: [("Units", "unit", "u", None)]}


def hashing(secret: str | None) -> ConverterCall:
    return ConverterCall(
        name="Hash",
        module="odf_quality.personal_data",
        attribute="Hash",
        parameters='{"column": "a", "secret": "people"}',
        secret=secret,
    )


def test_hash_is_hmac_sha256_under_the_secret(tmp_path: Path) -> None:
    # Source: RFC 4231, test case 2 has a shorter key; this is its text under one of 16 bytes, by OpenSSL.
    found = run(tmp_path, texts(a=["what do ya want for nothing?", None]), hashing("Jefe" * 4))
    expected = "2ccd85dfc8d18cb5d84fef4b198554699fece6e8692c9147b0da983f5b7bd413"
    assert [row["a"] for row in good(found)] == [expected, None]


def test_without_its_secret_nothing_is_hashed(tmp_path: Path) -> None:
    found = run(tmp_path, texts(a=["x", None]), hashing(None))
    assert {number: [each[1] for each in stated] for number, stated in bad(found).items()} == {
        1: ["failed"],
        2: ["failed"],
    }


def test_errors_of_all_converters_come_at_once_with_the_path_inside(tmp_path: Path) -> None:
    items = pa.list_(pa.struct([("price", pa.string()), ("name", pa.string())]))
    rows = [
        {"items": [{"price": "1,5", "name": "a"}, {"price": "x", "name": "b"}], "day": "1.1.2020"},
        {"items": [{"price": "2,5", "name": "c"}, None], "day": "2020"},
        {"items": [{"price": "y", "name": "d"}], "day": "z"},
        {"items": None, "day": None},
        {"items": [], "day": "2.1.2020"},
        {"items": [{"price": None, "name": "e"}, {"price": "3", "name": None}], "day": "3.1.2020"},
    ]
    table = pa.Table.from_pylist(rows, pa.schema([("items", items), ("day", pa.string())]))
    casts = (
        call("Cast", column="items[].price", type="DECIMAL(4,2)", decimal=","),
        call("Cast", column="day", type="DATE", formats=["%d.%m.%Y"]),
    )
    for group_rows in (1, 2, 1000):
        found = run(tmp_path / str(group_rows), table, *casts, group_rows=group_rows)
        assert bad(found) == {
            1: [("Cast", "form", "items[1].price", "x")],
            2: [("Cast", "form", "day", "2020")],
            3: [("Cast", "form", "items[0].price", "y"), ("Cast", "form", "day", "z")],
        }
        third = {"price": Decimal("3.00"), "name": None}
        assert good(found) == [
            {"items": None, "day": None},
            {"items": [], "day": date(2020, 1, 2)},
            {"items": [{"price": None, "name": "e"}, third], "day": date(2020, 1, 3)},
        ]


class Odd(Converter):
    """Misbehaves as it is told."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        pass

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("a", pa.string())])

    def convert(self, rows: pa.RecordBatch) -> Converted:
        for text in rows.column(0).to_pylist():
            match text:
                case "raise":
                    raise KeyError("no")
                case "fewer":
                    return Converted(rows.slice(1))
                case "other":
                    return Converted(rows.rename_columns(["b"]))
                case "nobody":
                    return Converted(rows, (Fault(code="c", message="m", rows=pa.array([rows.num_rows])),))
                case "all":
                    return Converted(rows, (Fault(code="c", message="m"),))
        return Converted(rows)


@pytest.mark.parametrize("word", ["raise", "fewer", "other", "nobody", "all"])
def test_rows_on_which_a_converter_misbehaves_are_bad_and_the_others_go_on(tmp_path: Path, word: str) -> None:
    found = run(tmp_path, texts(a=["x", "y", word, "z", word]), call(Odd))
    assert [row["a"] for row in good(found)] == ["x", "y", "z"]
    assert {number: [each[1] for each in stated] for number, stated in bad(found).items()} == {
        3: ["failed"],
        5: ["failed"],
    }


WRONG = [
    ("Cast", {"column": "b", "type": "INT"}, "column: expected a column of the rows (a, n), found b"),
    ("Cast", {"column": "n", "type": "INT"}, "column: expected texts (read the column as STRING), found n: int64"),
    ("Cast", {"column": "a", "type": "NUMBER"}, "type: expected BOOLEAN, INT"),
    ("Cast", {"column": "a", "type": "INT", "formats": ["%Y"]}, "formats: expected none for INT"),
    ("Cast", {"column": "a", "type": "DATE", "formats": ["%Y"]}, "formats: expected a pattern with one year"),
    ("Cast", {"column": "a", "type": "INT", "thousands": "0"}, "thousands: expected one character"),
    ("Cast", {"column": "a", "type": "DOUBLE", "thousands": "."}, "thousands: expected another mark"),
    ("Cast", {"column": "a", "type": "BOOLEAN", "true": ["x"], "false": ["X"]}, "false: expected words"),
    ("Rename", {"columns": {"a": "n"}}, "columns: expected a name that no other column has"),
    ("Rename", {"columns": {"x": "y"}}, "columns: expected columns of the rows"),
    ("Split", {"column": "a", "separator": "", "into": ["x"]}, "separator: expected a text"),
    ("Split", {"column": "a", "separator": ",", "into": ["x", "x"]}, "into: expected a name"),
    ("Join", {"columns": ["a"], "separator": ",", "into": "x"}, "columns: expected two or more"),
    ("Replace", {"column": "a", "values": {}, "others": "Drop"}, "others: expected Keep or Null or Refuse"),
    ("Mask", {"column": "a", "first": -1}, "first: expected 0 or more"),
    ("Units", {"column": "a", "unit": "a", "factors": {}}, "column: expected numbers"),
    ("Units", {"column": "n", "unit": "a", "factors": {"kg": "0"}}, "factors: expected numbers above 0"),
    ("JsonPath", {"column": "a", "path": "a..b", "into": "x"}, "path: expected a path such as"),
    ("Hash", {"column": "a"}, "secret: expected the parameter"),
]


@pytest.mark.parametrize(("kind", "parameters", "message"), WRONG)
def test_declaration_that_cannot_be_followed_is_rejected_with_what_would_be_right(
    kind: str, parameters: dict, message: str
) -> None:
    with pytest.raises(ParameterError, match="^" + re.escape(message)):
        make_converter(call(kind, **parameters), pa.schema([("a", pa.string()), ("n", pa.int64())]))


def test_secret_that_could_be_guessed_is_rejected_and_shown_nowhere() -> None:
    with pytest.raises(ParameterError, match="16 bytes") as refused:
        make_converter(hashing("short-secret"), pa.schema([("a", pa.string())]))
    assert "short-secret" not in str(refused.value) + repr(hashing("short-secret"))


def test_spec_names_every_converter_with_its_parameters() -> None:
    chapter = (REPOSITORY / "spec" / "plug-ins" / "quality.md").read_text()
    spec = chapter.partition("## Converters")[2].partition("## Validators")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", spec, re.MULTILINE))
    assert rows.keys() == {name for name in CONVERTERS.installed() if CONVERTERS.is_ours(name)}
    for name, reported in rows.items():
        schema = parameter_schema(load_plug_in(Converter, name, *(CONVERTERS.find_place(name) or ("", ""))))
        assert set(re.findall(r"`(\w+)`", reported)) >= set(schema["properties"]), name


CHAIN = (
    ("Trim", {"columns": ["a"], "nulls": ["NA"]}),
    ("Cast", {"column": "a", "type": "DECIMAL(6,2)", "decimal": ",", "thousands": "."}),
    ("Cast", {"column": "d", "type": "DATE", "formats": ["%d.%m.%Y", "rfc3339"]}),
    ("Split", {"column": "s", "separator": "-", "into": ["p", "q"]}),
    ("JsonPath", {"column": "j", "path": "$.k", "into": "v"}),
    ("Replace", {"column": "p", "values": {"x": "y"}, "others": "Refuse"}),
)
TEXT = st.one_of(
    st.none(),
    st.sampled_from(["1.234,5", "NA", "1.2.2020", "2020-02-30", "x-y", "x", '{"k": 1}', "[", "-"]),
    st.text(max_size=8),
)


@given(
    rows=st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), max_size=12),
    chain=st.lists(st.sampled_from(CHAIN), min_size=1, unique_by=lambda each: json.dumps(each)),
    group_rows=st.integers(1, 13),
)
def test_every_row_is_good_or_bad_and_none_is_both(
    tmp_path_factory: pytest.TempPathFactory, rows: list, chain: list, group_rows: int
) -> None:
    chain = [each for each in CHAIN if each in chain and (each[0] != "Replace" or CHAIN[3] in chain)]
    if not chain:
        return
    table = pa.Table.from_pylist(
        [dict(zip("adsj", row, strict=True)) for row in rows], pa.schema([(name, pa.string()) for name in "adsj"])
    )
    calls = [call(kind, **parameters) for kind, parameters in chain]
    found = run(tmp_path_factory.mktemp("rows"), table, *calls, group_rows=group_rows)
    whole = run(tmp_path_factory.mktemp("rows"), table, *calls)
    taken = pq.read_table(found.path).column(RECORD).to_pylist()
    assert sorted([*taken, *bad(found)]) == [*range(1, len(rows) + 1)]
    assert len(bad(found)) == found.bad_count
    assert (good(found), bad(found)) == (good(whole), bad(whole)), "subsets do not show"


def test_portion_of_which_every_row_was_left_out_goes_on_empty(tmp_path: Path) -> None:
    table = texts(a=["x"] * (2 * ROW_GROUP_ROWS) + ["y"])
    found = run(tmp_path, table, call("Deduplicate", columns=["a"]), call("Trim", columns=["a"]), group_rows=10**6)
    assert (good(found), bad(found), found.left_out) == ([{"a": "x"}, {"a": "y"}], {}, 2 * ROW_GROUP_ROWS - 1)
