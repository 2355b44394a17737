"""Rows with the same key in one batch: one stays, and every row is good, bad or left out (CONV-7)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_engines.conversion.contract import ParameterError, Selection
from odf_engines.conversion.converted_rows import make_converter
from odf_engines.conversion.stages import FailedSelectionError
from odf_engines.ingest_parts import ConverterCall
from plug_ins.quality.unit.test_converters import bad, call, good, run

NAN = float("nan")
ROWS = [
    {"k": "a", "n": 2, "x": 1.0},
    {"k": "b", "n": None, "x": NAN},
    {"k": "a", "n": 1, "x": 1.0},
    {"k": None, "n": 9, "x": None},
    {"k": "b", "n": 5, "x": 2.0},
    {"k": "a", "n": 2, "x": 0.5},
    {"k": None, "n": 9, "x": None},
]
TABLE = pa.Table.from_pylist(ROWS, pa.schema([("k", pa.string()), ("n", pa.int64()), ("x", pa.float64())]))


@pytest.mark.parametrize(
    ("parameters", "stays"),
    [
        ({}, [0, 1, 3, 6]),
        ({"keep": "Last"}, [3, 4, 5, 6]),
        ({"by": "n"}, [2, 3, 4, 6]),
        ({"by": "n", "keep": "Last"}, [3, 4, 5, 6]),
        ({"by": "x"}, [3, 4, 5, 6]),
        ({"by": "x", "keep": "Last"}, [2, 3, 4, 6]),
        ({"columns": ["k", "n"]}, [0, 1, 2, 3, 4, 6]),
    ],
)
@pytest.mark.parametrize("group_rows", [1, 3, 1000])
def test_of_rows_with_one_key_one_stays(tmp_path: Path, parameters: dict, stays: list[int], group_rows: int) -> None:
    found = run(tmp_path, TABLE, call("Deduplicate", **{"columns": ["k"], **parameters}), group_rows=group_rows)
    assert repr(good(found)) == repr([ROWS[place] for place in stays])
    assert (found.left_out, bad(found)) == (len(ROWS) - len(stays), {})


OTHER_NAN = float(np.array([0xFFF8000000000001], "u8").view("f8")[0])
NUMBERS = pa.table({"x": pa.array([0.0, -0.0, NAN, OTHER_NAN, 1.0, None, None]), "n": pa.array(range(7))})


def test_rows_of_both_zeros_and_of_all_that_is_no_number_have_one_key_query_3(tmp_path: Path) -> None:
    found = run(tmp_path, NUMBERS, call("Deduplicate", columns=["x"]))
    assert ([row["n"] for row in good(found)], found.left_out) == ([0, 2, 4, 5, 6], 2)


def test_row_that_fails_takes_no_good_one_away_and_tells_all_its_errors(tmp_path: Path) -> None:
    rows = {"k": ["a", "a", "a", "b"], "n": ["x", "1", "2", "3"], "m": ["y", "1", "2", "z"]}
    found = run(
        tmp_path,
        pa.table(rows),
        call("Cast", column="n", type="INT"),
        call("Deduplicate", columns=["k"]),
        call("Cast", column="m", type="INT"),
        group_rows=2,
    )
    assert good(found) == [{"k": "a", "n": 1, "m": 1}]
    assert bad(found) == {1: [("Cast", "form", "n", "x"), ("Cast", "form", "m", "y")], 4: [("Cast", "form", "m", "z")]}
    assert found.left_out == 1


class Picks(Selection):
    """Answers as it is told."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        places: list[int]

    @property
    def column_names(self) -> tuple[str, ...]:
        return ("k",)

    def leave_out(self, rows: pa.Table) -> pa.Array:
        assert rows.column_names == ["k"]
        if not self.parameters.places:
            raise KeyError("no")
        return pa.array(self.parameters.places)


@pytest.mark.parametrize("places", [[], [7], [-1]])
def test_selection_that_fails_or_names_no_row_fails_the_batch_by_its_name(tmp_path: Path, places: list[int]) -> None:
    picks = ConverterCall(name="Picks", module=__name__, attribute="Picks", parameters=f'{{"places": {places}}}')
    with pytest.raises(FailedSelectionError, match="converter Picks failed"):
        run(tmp_path, TABLE, picks)
    named = ConverterCall(name="Picks", module=__name__, attribute="Picks", parameters='{"places": [0, 6, 0]}')
    assert run(tmp_path, TABLE, named).left_out == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"columns": []}, "columns: expected different columns, one at least, found none"),
    ({"columns": ["k", "k"]}, "columns: expected different columns"),
    ({"columns": ["z"]}, r"columns: expected columns of the rows \(k, l\), found z"),
    ({"columns": ["l"]}, "columns: expected columns of plain values, found l: list"),
    ({"columns": ["k"], "by": "z"}, "by: expected columns of the rows"),
    ({"columns": ["k"], "keep": "Any"}, "keep: expected First or Last, found Any"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG)
def test_declaration_that_cannot_be_followed_is_rejected(parameters: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_converter(call("Deduplicate", **parameters), pa.schema([("k", pa.string()), ("l", pa.list_(pa.int64()))]))


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(["1", "2", "x", None]))),
    group_rows=st.integers(1, 5),
    keep=st.sampled_from(["First", "Last"]),
)
def test_rows_in_are_good_bad_and_left_out_together(
    tmp_path_factory: pytest.TempPathFactory, rows: list, group_rows: int, keep: str
) -> None:
    table = pa.table(
        {"k": pa.array([k for k, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.string())}
    )
    calls = call("Cast", column="n", type="INT"), call("Deduplicate", columns=["k"], by="n", keep=keep)
    found = run(tmp_path_factory.mktemp("rows"), table, *calls, group_rows=group_rows)
    assert len(good(found)) + found.bad_count + found.left_out == len(rows)
    # Told by a plain loop.
    best: dict[str, tuple[float, int]] = {}
    sign = 1 if keep == "First" else -1
    for place, (k, n) in enumerate(rows):
        if k is not None and n != "x":
            rank = float("inf") if n is None else sign * int(n), sign * place
            best[k] = min(best.get(k, rank), rank)
    stays = {sign * place for _, place in best.values()}
    expected = [(k, n) for place, (k, n) in enumerate(rows) if n != "x" and (k is None or place in stays)]
    assert [(row["k"], None if row["n"] is None else str(row["n"])) for row in good(found)] == expected
