"""What validators say of rows (VALID-2 to VALID-7): each by itself, and all rows parted into good and bad."""

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_engines.ingest_parts import ValidatorCall
from odf_engines.plug_in_names import VALIDATORS
from odf_engines.records.carriers import TIMESTAMP, to_carrier
from odf_engines.validation.contract import Fault, ParameterError, Validator
from odf_engines.validation.plug_ins import load_validator, parameter_schema
from odf_engines.validation.validated_rows import FailedValidatorError, RowFile, ValidatedRows, validate

NOW_MS = 1_700_000_000_000


class RaisesOnSeven(Validator):
    """A plug-in with a mistake."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        column: str = "n"

    @property
    def column_names(self):
        return (self.parameters.column,)

    def check(self, rows):
        if 7 in rows.column(0).to_pylist():
            raise RuntimeError("seven")
        yield Fault(code="odd", message="odd", column="n", rows=pa.array(_odd(rows)))


class RaisesOnAll(RaisesOnSeven):
    sees_whole_batch = True

    def check(self, rows):
        raise RuntimeError("always")


class AnswersNonsense(RaisesOnSeven):
    def check(self, rows):
        yield Fault(code="odd", message="odd", rows=pa.array([rows.num_rows]))


def _odd(rows):
    return [place for place, value in enumerate(rows.column(0).to_pylist()) if value is not None and value % 2]


def call(kind: str | type, *, is_warning: bool = False, **parameters: object) -> ValidatorCall:
    place = VALIDATORS.find_place(kind) if isinstance(kind, str) else (__name__, kind.__name__)
    assert place is not None
    name = kind if isinstance(kind, str) else kind.__name__
    return ValidatorCall(
        name=name, module=place[0], attribute=place[1], parameters=json.dumps(parameters), is_warning=is_warning
    )


def run(folder: Path, table: pa.Table, *calls: ValidatorCall, group_rows: int = 1000) -> ValidatedRows:
    numbers = pa.array(np.arange(1, table.num_rows + 1))
    carriers = [to_carrier(column.combine_chunks(), column.type) for column in table.columns]
    path = folder / "rows.parquet"
    names = ["record", *(f"v{i}" for i in range(table.num_columns))]
    pq.write_table(pa.table([numbers, *carriers], names=names), path, row_group_size=group_rows)
    return validate(RowFile(path, "record", table.schema), calls, folder, now_ms=NOW_MS)


def errors(rows: ValidatedRows) -> list[tuple]:
    return [(number, e.code, e.column, e.value) for number, found in rows.iter_bad() for e in found]


def good(rows: ValidatedRows) -> list[int]:
    return pq.read_table(rows.path, columns=["record"]).column(0).to_pylist()


def test_required_finds_nulls_also_inside_of_structs_and_lists(tmp_path: Path) -> None:
    item = pa.struct([("price", pa.int64())])
    schema = pa.schema([("a", pa.struct([("zip", pa.string())])), ("items", pa.list_(item)), ("n", pa.int64())])
    rows = [
        {"a": {"zip": "1"}, "items": [{"price": 1}], "n": 1},
        {"a": {"zip": None}, "items": [], "n": 2},
        {"a": None, "items": [{"price": 2}, {"price": None}, None], "n": None},
    ]
    found = run(tmp_path, pa.Table.from_pylist(rows, schema), call("Required", columns=["a.zip", "items[].price", "n"]))
    assert errors(found) == [
        (2, "required", "a.zip", None),
        (3, "required", "a.zip", None),
        (3, "required", "items[1].price", None),
        (3, "required", "items[2].price", None),
        (3, "required", "n", None),
    ]
    assert (good(found), found.bad_count) == ([1], 2)


def test_lists_in_lists_name_the_element(tmp_path: Path) -> None:
    table = pa.table({"m": pa.array([[[1, 2], [3]], None, [[], [9, 4, 9]]], pa.list_(pa.list_(pa.int64())))})
    found = run(tmp_path, table, call("Range", column="m[][]", most="8"))
    assert errors(found) == [(3, "range", "m[1][0]", "9"), (3, "range", "m[1][2]", "9")]


@pytest.mark.parametrize(
    ("values", "parameters", "bad"),
    [
        (pa.array([0, 5, 10, 11, None, -1]), {"least": "0", "most": "10"}, [4, 6]),
        (pa.array([200, 201], pa.uint8()), {"most": "200"}, [2]),
        (pa.array([float("nan"), 1.5, float("inf")]), {"most": "2.5"}, [1, 3]),
        (pa.array([Decimal("1.50"), Decimal("1.49")], pa.decimal128(5, 2)), {"least": "1.5"}, [2]),
        (pa.array([dt.date(2020, 2, 29), dt.date(2020, 3, 1)]), {"least": "2020-03-01"}, [1]),
        (pa.array([0, 1], pa.int64()).cast(TIMESTAMP), {"least": "1970-01-01T00:00:00.001Z"}, [1]),
        (pa.array(["a", "b", "c"]), {"least": "b"}, [1]),
    ],
    ids=["integers", "unsigned", "floats", "decimals", "days", "times", "texts"],
)
def test_range_is_that_of_the_columns_type(tmp_path: Path, values: pa.Array, parameters: dict, bad: list[int]) -> None:
    found = run(tmp_path, pa.table({"n": values}), call("Range", column="n", **parameters))
    assert [number for number, *_ in errors(found)] == bad


@pytest.mark.parametrize(
    ("parameters", "texts", "bad"),
    [
        ({"pattern": "[a-z]+"}, ["abc", "", "aBc", "abc\n", None, "a|b"], [2, 3, 4, 6]),
        ({"pattern": "a|b"}, ["a", "b", "ab"], [3]),
        ({"format": "email"}, ["a@b.org", "a@b", "a b@c.org", "a@b.org\n"], [2, 3, 4]),
        ({"format": "ipv4"}, ["127.0.0.1", "256.0.0.1", "1.2.3", "1.2.3.4.", "01.2.3.4"], [2, 3, 4, 5]),
        ({"format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000", "123e4567"], [2]),
        ({"format": "uri"}, ["https://x/", "x"], [2]),
    ],
)
def test_format_is_that_of_the_whole_text(tmp_path: Path, parameters: dict, texts: list, bad: list[int]) -> None:
    found = run(tmp_path, pa.table({"t": pa.array(texts, pa.string())}), call("Format", column="t", **parameters))
    assert [number for number, *_ in errors(found)] == bad


def test_enumeration_takes_its_values_and_nulls(tmp_path: Path) -> None:
    found = run(tmp_path, pa.table({"n": pa.array([1, 2, None, 3])}), call("OneOf", column="n", values=["1", "3"]))
    assert errors(found) == [(2, "enumeration", "n", "2")]


def test_first_row_of_several_with_the_same_key_is_good(tmp_path: Path) -> None:
    table = pa.table({"a": ["x", "y", "x", None, None, "x"], "b": [1, 1, 1, 2, 2, 2]})
    found = run(tmp_path, table, call("Unique", columns=["a", "b"]), call("Unique", columns=["a"]), group_rows=2)
    assert errors(found) == [(3, "duplicate", None, None), (3, "duplicate", "a", "x"), (6, "duplicate", "a", "x")]


def test_both_zeros_are_one_value_of_a_key_query_3(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([0.0, -0.0, float("nan"), -float("nan"), 1.0])})
    found = run(tmp_path, table, call("Unique", columns=["x"]))
    assert [(number, code) for number, code, *_ in errors(found)] == [(2, "duplicate"), (4, "duplicate")]


def test_batch_is_told_of_as_a_whole(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([NOW_MS - 3_600_001, None], pa.int64()).cast(TIMESTAMP)})
    found = run(tmp_path, table, call("RowCount", least="3"), call("Freshness", column="at", within="1h"))
    assert found.batch_faults == (
        "RowCount: expected at least 3 rows, found 2",
        "Freshness: expected a value of the last 1h, but the newest value is 2023-11-14T21:13:19.999Z",
    )
    assert (found.bad_count, good(found)) == (0, [1, 2])
    fresh = run(tmp_path, table, call("RowCount", least="2", most="2"), call("Freshness", column="at", within="61m"))
    assert fresh.batch_faults == ()


def test_every_validator_sees_every_row_and_all_errors_come_at_once_in_order(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([1, None, 30]), "t": ["a", "b", "ß"]})
    calls = (
        call("Format", column="t", pattern="[a-z]"),
        call("Range", column="n", most="10"),
        call("OneOf", column="n", values=["1"], is_warning=False),
    )
    found = run(tmp_path, table, *calls)
    ((number, reported),) = list(found.iter_bad())
    assert (number, [(e.plug_in, e.code, e.value) for e in reported]) == (
        3,
        [("Format", "format", "ß"), ("Range", "range", "30"), ("OneOf", "enumeration", "30")],
    )


def test_row_with_nothing_but_warnings_is_taken(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 20, 30]})
    calls = (call("Range", column="n", most="10", is_warning=True), call("Range", column="n", most="25"))
    found = run(tmp_path, table, *calls)
    assert good(found) == [1, 2]
    assert [(number, [e.is_warning for e in reported]) for number, reported in found.iter_bad()] == [(3, [True, False])]
    assert [number for number, _ in found.iter_warned()] == [2]


def test_plug_in_that_raises_traps_the_row_on_which_it_does_so(tmp_path: Path) -> None:
    found = run(tmp_path, pa.table({"n": [2, 3, 7, 4, 7]}), call(RaisesOnSeven), group_rows=3)
    assert errors(found) == [(2, "odd", "n", "3"), (3, "failed", None, None), (5, "failed", None, None)]
    assert good(found) == [1, 4]
    assert "RuntimeError: seven" in dict(found.iter_bad())[3][0].message


def test_plug_in_that_names_rows_that_are_not_there_traps_them_all(tmp_path: Path) -> None:
    found = run(tmp_path, pa.table({"n": [2, 3]}), call(AnswersNonsense))
    assert [(number, code) for number, code, *_ in errors(found)] == [(1, "failed"), (2, "failed")]


def test_plug_in_that_fails_on_a_whole_batch_fails_it_by_name(tmp_path: Path) -> None:
    with pytest.raises(FailedValidatorError, match="validator RaisesOnAll failed: RuntimeError: always"):
        run(tmp_path, pa.table({"n": [1]}), call(RaisesOnAll))


def test_batch_without_rows_has_no_bad_ones(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([], pa.int64())})
    found = run(
        tmp_path, table, call("Unique", columns=["n"]), call("Range", column="n", most="1"), call(RaisesOnSeven)
    )
    assert (found.bad_count, good(found), list(found.iter_bad())) == (0, [], [])


@pytest.mark.parametrize(
    ("kind", "parameters", "stated"),
    [
        ("Range", {"column": "m", "most": "1"}, "column: expected a column of the rows (n, t, s), found m"),
        ("Range", {"column": "n"}, "least: expected a least value, a most one or both, found neither"),
        ("Range", {"column": "n", "most": "x"}, "most: expected a value of the type int64, found x"),
        ("Range", {"column": "n", "least": "0.5"}, "least: expected a value of the type int64, found 0.5"),
        ("Range", {"column": "s.y", "most": "1"}, "column: expected a member of s (x), found y"),
        ("Range", {"column": "n[]", "most": "1"}, "column: expected a list at n, found int64"),
        ("Range", {"colum": "n", "most": "1"}, "colum: expected a parameter of it (column, least, most), found colum"),
        ("Range", {"most": "1"}, "column: expected the parameter `column`, found nothing"),
        ("Format", {"column": "n", "format": "uuid"}, "column: expected a column of texts, found int64"),
        ("Format", {"column": "t", "format": "uid"}, "format: expected one of email, ipv4, uri, uuid, found uid"),
        ("Format", {"column": "t", "pattern": "("}, "pattern: expected a regular expression (RE2)"),
        ("Format", {"column": "t"}, "pattern: expected either a pattern or a format, found both or neither"),
        ("OneOf", {"column": "n", "values": ["1", "b"]}, "values: expected a value of the type int64, found b"),
        ("Unique", {"columns": []}, "columns: expected at least one column, found none"),
        ("Unique", {"columns": "n"}, "columns: expected `array`, found n"),
        ("RowCount", {"least": "many"}, "least: expected `int`, found many"),
        ("Freshness", {"column": "n", "within": "1d"}, "column: expected a column of dates or timestamps, found int64"),
        ("Predicate", {"sql": " "}, "sql: expected a condition over the columns of a row, found nothing"),
    ],
)
def test_declaration_that_cannot_be_followed_says_what_would_be(
    tmp_path: Path, kind: str, parameters: dict, stated: str
) -> None:
    schema = pa.schema([("n", pa.int64()), ("t", pa.string()), ("s", pa.struct([("x", pa.int64())]))])
    with pytest.raises(ParameterError) as caught:
        run(tmp_path, schema.empty_table(), call(kind, **parameters))
    assert str(caught.value).startswith(stated)


@pytest.mark.parametrize("name", VALIDATORS.installed())
def test_parameters_of_every_validator_are_a_json_schema_that_its_guide_tells(name: str) -> None:
    place = VALIDATORS.find_place(name)
    assert place is not None
    schema = parameter_schema(load_validator(name, *place))
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    reported = (Path(__file__).parents[4] / "spec" / "plug-ins" / "quality.md").read_text()
    (row,) = (line for line in reported.splitlines() if line.startswith(f"| `{name}` "))
    assert all(f"`{parameter}`" in row for parameter in schema["properties"])


ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-5, 40)), st.one_of(st.none(), st.text("abß7", max_size=3))), max_size=60
)
CALLS = st.lists(
    st.sampled_from(
        [
            call("Required", columns=["n", "t"]),
            call("Range", column="n", least="0", most="30"),
            call("Range", column="n", most="20", is_warning=True),
            call("Format", column="t", pattern="[ab]*"),
            call("OneOf", column="t", values=["a", "b", ""]),
            call("Unique", columns=["n"]),
            call("Unique", columns=["n", "t"]),
            call(RaisesOnSeven),
            call("RowCount", least="5"),
        ]
    ),
    max_size=5,
)


@given(rows=ROWS, calls=CALLS, group_rows=st.integers(1, 20))
def test_every_row_is_good_or_bad_and_never_both(
    tmp_path_factory: pytest.TempPathFactory, rows: list, calls: list[ValidatorCall], group_rows: int
) -> None:
    table = pa.table(
        {"n": pa.array([n for n, _ in rows], pa.int64()), "t": pa.array([t for _, t in rows], pa.string())}
    )
    found = run(tmp_path_factory.mktemp("rows"), table, *calls, group_rows=group_rows)
    bad = [number for number, _ in found.iter_bad()]
    assert sorted([*good(found), *bad]) == list(range(1, len(rows) + 1))
    assert good(found) == sorted(good(found))
    assert bad == sorted(set(bad))
    assert len(bad) == found.bad_count
    assert all(any(not each.is_warning for each in reported) for _, reported in found.iter_bad())
    assert {number for number, _ in found.iter_warned()} <= set(good(found))
