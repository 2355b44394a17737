"""Values that must be of a type, or stand in another dataset: which rows are bad and why (VALID-6, VALID-9)."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_engines.records.referenced_rows import ReferencedRows
from odf_engines.validation.contract import Context, ParameterError
from odf_engines.validation.plug_ins import make_validator
from plug_ins.quality.unit.test_lookup import APPEND, RETRACT, SLICES, dataset
from plug_ins.quality.unit.test_validators import NOW_MS, call, errors, good, run


def reference(rows: ReferencedRows | None, on: dict[str, str]):
    return replace(call("Reference", dataset="countries", on=on), rows=rows)


@pytest.mark.parametrize("group_rows", [1, 2, 1000])
def test_value_that_is_in_no_row_in_force_is_bad(tmp_path: Path, group_rows: int) -> None:
    table = pa.table({"code": ["FR", "IT", None, "DE", "XX"], "n": pa.array([2, 3, 4, 5, 6])})
    found = run(tmp_path, table, reference(dataset(tmp_path, *SLICES), {"code": "code"}), group_rows=group_rows)
    assert errors(found) == [(2, "reference", "code", "IT"), (5, "reference", "code", "XX")]
    assert good(found) == [1, 3, 4]
    assert [e.message for _, stated in found.iter_bad() for e in stated] == ["countries has no row with this code"] * 2


def test_values_inside_of_lists_are_named_by_element(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("n", pa.int16())]))
    items = pa.array([[{"n": 1}, {"n": 7}], [], None, [{"n": None}, {"n": 5}]], kind)
    found = run(tmp_path, pa.table({"items": items}), reference(dataset(tmp_path, *SLICES), {"items[].n": "number"}))
    assert errors(found) == [(1, "reference", "items[1].n", "7")]


def test_several_columns_refer_to_one_row(tmp_path: Path) -> None:
    rows = dataset(tmp_path, [(APPEND, "a", 1, 11), (APPEND, "b", 2, 21)])
    table = pa.table({"c": ["a", "a", "b", None, "b"], "n": pa.array([1, 2, 1, 9, None], pa.int64())})
    found = run(tmp_path, table, reference(rows, {"c": "code", "n": "number"}))
    assert errors(found) == [(2, "reference", None, None), (3, "reference", None, None)]


def test_dataset_of_which_nothing_is_in_force_rejects_every_value(tmp_path: Path) -> None:
    rows = dataset(tmp_path, [(APPEND, "FR", 2, 60), (RETRACT, "FR", 2, 60)])
    found = run(tmp_path, pa.table({"code": ["FR", None]}), reference(rows, {"code": "code"}))
    assert errors(found) == [(1, "reference", "code", "FR")]


WRONG: list[tuple[dict[str, str], str]] = [
    ({}, "on: expected different columns, one at least"),
    ({"kode": "code"}, "on: expected a column of the rows"),
    ({"code": "kode"}, r"on: expected plain columns of countries \(event_time, code, .*, found kode"),
    ({"code": "number"}, r"on: expected code to be int32, as number is \(Cast\), found string"),
    ({"share": "share"}, "on: expected columns with exact values"),
    ({"tags": "code"}, "on: expected columns of plain values"),
    ({"code": "code", "tags[]": "code"}, "on: expected columns of the rows"),
]


@pytest.mark.parametrize(("on", "message"), WRONG)
def test_reference_that_cannot_be_followed_is_rejected(tmp_path: Path, on: dict[str, str], message: str) -> None:
    schema = pa.schema([("code", pa.string()), ("share", pa.float64()), ("tags", pa.list_(pa.string()))])
    rows = dataset(tmp_path)
    with pytest.raises(ParameterError, match=message):
        make_validator(reference(rows, on), Context(schema=schema, now_ms=NOW_MS, rows=rows))


@given(theirs=st.lists(st.sampled_from("abc")), ours=st.lists(st.none() | st.sampled_from("abcd"), min_size=1))
def test_good_and_bad_rows_are_all_rows(tmp_path_factory: pytest.TempPathFactory, theirs: list, ours: list) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = dataset(folder, [(APPEND, code, 1, 1) for code in theirs])
    found = run(folder, pa.table({"c": pa.array(ours, pa.string())}), reference(rows, {"c": "code"}))
    wrong = {place for place, code in enumerate(ours, 1) if code is not None and code not in theirs}
    assert {number for number, *_ in errors(found)} == wrong
    assert {*good(found)} == {*range(1, len(ours) + 1)} - wrong


TYPED: list[tuple[str, pa.Array, list[tuple[int, str]]]] = [
    (
        "INT",
        pa.array(["1", " 1", "-7", "2147483648", "x", "", None]),
        [(2, "form"), (4, "misfit"), (5, "form"), (6, "form")],
    ),
    ("DECIMAL(4,2)", pa.array(["1.25", "99.99", "100", "1.001"]), [(3, "misfit"), (4, "misfit")]),
    ("DATE", pa.array(["2020-02-29", "2021-02-29", "29.02.2020"]), [(2, "form"), (3, "form")]),
    ("BOOLEAN", pa.array(["true", "FALSE", "1"]), [(3, "form")]),
    ("INT", pa.array([1, 2**31, None], pa.int64()), [(2, "misfit")]),
    ("BIGINT", pa.array([1.0, 1.5, float("nan")]), [(2, "form"), (3, "form")]),
    ("INT", pa.array([Decimal("1.50")], pa.decimal128(5, 2)), [(1, "form")]),
    ("DOUBLE", pa.array([1, 2], pa.int64()), []),
    ("TIMESTAMP", pa.array([0, None], pa.timestamp("ms", "UTC")), []),
]


@pytest.mark.parametrize(("kind", "values", "wrong"), TYPED)
def test_value_of_another_type_is_bad(tmp_path: Path, kind: str, values: pa.Array, wrong: list) -> None:
    found = run(tmp_path, pa.table({"x": values}), call("Type", column="x", type=kind))
    assert [(number, code) for number, code, *_ in errors(found)] == wrong
    assert {column for _, _, column, _ in errors(found)} <= {"x"}


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("INTT", pa.array(["1"]), "type: expected BOOLEAN, INT"),
        ("INT", pa.array([[1]]), "column: expected a column of texts"),
        ("DATE", pa.array([0], pa.timestamp("ms", "UTC")), "column: expected a column of texts"),
    ],
)
def test_type_that_cannot_be_judged_is_rejected(kind: str, values: Any, message: str) -> None:
    schema = pa.schema([("x", values.type)])
    with pytest.raises(ParameterError, match=message):
        make_validator(call("Type", column="x", type=kind), Context(schema=schema, now_ms=NOW_MS))
