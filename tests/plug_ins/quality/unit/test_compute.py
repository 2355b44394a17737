"""Columns that SQL computes: each row by itself, the same wherever it runs, and no row is lost (CONV-9)."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_engines.conversion.contract import ParameterError
from odf_engines.conversion.converted_rows import make_converter
from plug_ins.quality.unit.test_converters import bad, call, good, run

ROWS = pa.table(
    {
        "n": pa.array([10, 20, None, 30], pa.int32()),
        "Text": pa.array(["2", "x", "4", "0"]),
        "at": pa.array([0, 1, 2, None], pa.timestamp("ms", "UTC")),
        "s": pa.array([{"p": 1}, {"p": None}, None, {"p": 4}], pa.struct([("p", pa.int64())])),
    }
)


@pytest.mark.parametrize("group_rows", [1, 3, 1000])
def test_row_on_which_an_expression_fails_is_bad_and_the_others_are_computed(tmp_path: Path, group_rows: int) -> None:
    columns = {"n": "n + 1", "share": "n / CAST(Text AS INT)", "q": "s.p", "day": "CAST(at AS DATE)"}
    found = run(tmp_path, ROWS, call("Compute", columns=columns), group_rows=group_rows)
    assert found.schema.names == ["n", "Text", "at", "s", "share", "q", "day"]
    assert bad(found) == {
        2: [("Compute", "expression", "share", None)],
        4: [("Compute", "expression", "share", None)],
    }
    messages = [error.message for _, errors in found.iter_bad() for error in errors]
    assert "Cannot cast string 'x' to value of Int32 type" in messages[0]
    assert "Divide by zero" in messages[1]
    shown = [(row["n"], row["share"], row["q"], row["day"]) for row in good(found)]
    assert shown == [(11, 5, 1, date(1970, 1, 1)), (None, None, None, date(1970, 1, 1))]


def test_all_rows_that_fail_are_found_in_one_call_each_with_its_own_reason() -> None:
    texts = pa.array([str(each) if each % 3 else f"x{each}" for each in range(1000)])
    rows = pa.record_batch({"t": texts})
    converter = make_converter(call("Compute", columns={"n": "CAST(t AS INT)", "m": "5"}), rows.schema)
    converted = converter.convert(rows)
    (fault,) = converted.faults
    assert fault.rows.to_pylist() == [*range(0, 1000, 3)]
    assert all(
        f"'x{row}'" in text for row, text in zip(fault.rows.to_pylist(), fault.messages.to_pylist(), strict=True)
    )
    assert converted.rows.column("n").to_pylist() == [each if each % 3 else None for each in range(1000)]
    assert set(converted.rows.column("m").to_pylist()) == {5}


def test_further_converters_see_the_row_with_null_where_an_expression_failed(tmp_path: Path) -> None:
    calls = (call("Compute", columns={"m": "n / CAST(Text AS INT)"}), call("Cast", column="Text", type="BOOLEAN"))
    found = run(tmp_path, ROWS.slice(1, 1), *calls)
    assert [(name, code) for name, code, *_ in bad(found)[1]] == [("Compute", "expression"), ("Cast", "form")]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("upper(Text)", "2"),
        ("to_timestamp(n)", datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC)),
        ("CAST(n AS DECIMAL(6,2))", Decimal("10.00")),
        ("CASE WHEN n > 5 THEN 'much' ELSE 'little' END", "much"),
        ("[n, n]", [10, 10]),
        ("TRY_CAST('x' AS INT)", None),
        ("Text || ' UNNEST(x)'", "2 UNNEST(x)"),
        ("'\n  Subquery: WindowAggr'", "\n  Subquery: WindowAggr"),
    ],
)
def test_values_have_types_that_slices_hold(tmp_path: Path, sql: str, value: object) -> None:
    found = run(tmp_path, ROWS.slice(0, 1), call("Compute", columns={"x": sql}))
    assert good(found)[0]["x"] == value


WRONG = [
    ({}, "columns: expected expressions by the names"),
    ({"": "1"}, "columns: expected expressions by the names"),
    ({"x": "Nn + 1"}, r"columns: expected an expression over columns of the rows \(n, Text, at, s\), found Nn"),
    ({"x": "text"}, "found text"),
    ({"x": "now()"}, "expected an expression over one row that can be repeated, found x: .*it reads the clock"),
    ({"x": "CURRENT_TIMESTAMP"}, "it reads the clock"),
    ({"x": "random()"}, "found x: .*something else each time"),
    ({"x": "exp(n)"}, "mathematical library"),
    ({"x": "sum(n)"}, "Invalid function 'sum'"),
    ({"x": "row_number() OVER ()"}, "of one row, found x: BoundedWindowAggExec"),
    ({"x": "(SELECT 1)"}, "expected an expression over the columns of one row, found x: .*ScalarSubqueryExec"),
    ({"x": "EXISTS (SELECT 1)"}, "expected an expression over the columns of one row"),
    ({"x": "unnest([1, 2])"}, "expected an expression over the columns of one row, found x: .*Unnest"),
    ({"x": 'CASE WHEN n = 1 THEN "unnest"([n]) END'}, "expected an expression over the columns of one row"),
    ({"x": "n IN (SELECT 1)"}, "expected an expression over the columns of one row"),
    ({"x": "n + last_value(n) OVER ()"}, "of one row, found x: WindowAggExec"),
    ({"x": "1) AS y, (2"}, "Expected: end of expression"),
    ({"x": "n; DROP TABLE rows"}, "Expected: end of expression"),
    ({"x": ""}, "columns: expected an expression"),
    ({"x": "NULL"}, "columns: expected a type"),
    ({"x": "'\0'"}, r"no character U\+0000"),
    ({"x": "(" * 500 + "1" + ")" * 500}, "at most 100 brackets"),
    ({"x": "INTERVAL '1 month'"}, "expected an expression over one row that can be repeated"),
]


@pytest.mark.parametrize(("columns", "message"), WRONG)
def test_expression_that_is_none_of_one_row_or_cannot_be_repeated_is_rejected(columns: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_converter(call("Compute", columns=columns), ROWS.schema)


@settings(max_examples=20)
@given(divisors=st.lists(st.integers(-2, 2) | st.none(), max_size=40), group_rows=st.integers(1, 50))
def test_good_and_bad_rows_are_all_rows(
    tmp_path_factory: pytest.TempPathFactory, divisors: list, group_rows: int
) -> None:
    table = pa.table({"d": pa.array(divisors, pa.int64())})
    found = run(tmp_path_factory.mktemp("c"), table, call("Compute", columns={"x": "4 / d"}), group_rows=group_rows)
    assert [*bad(found)] == [place for place, each in enumerate(divisors, 1) if each == 0]
    assert [row["x"] for row in good(found)] == [
        None if each is None else int(4 / each) for each in divisors if each != 0
    ]
