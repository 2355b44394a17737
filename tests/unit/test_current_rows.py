"""Clause QUERY-3 in DataFusion: the current rows of a changelog, whichever way they are computed."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.datafusion import current_rows, query
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

MEMORY_BYTES = 256 << 20
NAN, SHOWN = float("nan"), "SELECT * FROM log__state"
LOG = [
    (0, "a", 1, 0.5), (0, "a", 1, 0.5), (0, "a", 1, 0.5), (1, "a", 1, 0.5),
    (0, None, 2, NAN), (2, None, 2, NAN), (3, None, None, NAN),
    (0, "b", 3, -0.0), (0, "b", 3, 0.0), (1, "b", 3, 0.0),
    (0, "c", 4, None), (1, "c", 4, None), (0, "c", 4, None),
]  # fmt: skip


def make_table(folder: Path, log: list[tuple[Any, ...]], last: pa.DataType) -> QueryTable:
    """A changelog in two files, so that what is taken back stands in another one than what was given."""
    moment = pa.scalar(0, pa.timestamp("ms", "UTC"))
    table = pa.table(
        {
            "offset": pa.array(range(len(log)), pa.int64()),
            "op": pa.array([each[0] for each in log], pa.int32()),
            "system_time": pa.array([moment] * len(log)),
            "name": pa.array([each[1] for each in log], pa.string()),
            "n": pa.array([each[2] for each in log], pa.int64()),
            "last": pa.array([each[3] for each in log], last),
        }
    )
    paths = (folder / "first.parquet", folder / "second.parquet")
    for path, part in zip(paths, (table.slice(0, 3), table.slice(3)), strict=True):
        pq.write_table(part, path)
    schema = data_schema_of(table.schema)
    return QueryTable(name="log", vocabulary=Vocabulary(event_time="name"), schema=schema, slices=paths)


def ask(folder: Path, table: QueryTable, sql: str = SHOWN, memory_bytes: int = MEMORY_BYTES) -> list[dict[str, Any]]:
    place = folder / "asked"
    place.mkdir(exist_ok=True)
    query.run(QueryRequest(tables=(table,), sql=sql), place, memory_bytes)
    return pq.read_table(place / "result.parquet").to_pylist()


def form(row: tuple[Any, ...]) -> str:
    """The text of a row, the same for both zeros."""
    return repr(row).replace("-0.0", "0.0")


def current_of(log: list[tuple[Any, ...]]) -> Counter[str]:
    standing: Counter[str] = Counter()
    for op, *row in log:
        standing[form(tuple(row))] += 1 if op in {0, 3} else -1
    return +standing


def as_counter(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(form(tuple(row.values())) for row in rows)


@pytest.mark.parametrize("most", [0, current_rows.MAX_TAKEN_ROWS], ids=["all-counted", "few-counted"])
def test_rows_that_were_not_taken_back_are_current_each_as_often_as_it_stands_query_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(current_rows, "MAX_TAKEN_ROWS", most)
    assert as_counter(ask(tmp_path, make_table(tmp_path, LOG, pa.float64()))) == current_of(LOG)


def test_rows_of_lists_are_current_as_others_are_query_3(tmp_path: Path) -> None:
    log = [(op, name, n, [n, None] if n else None) for op, name, n, _ in LOG]
    assert as_counter(ask(tmp_path, make_table(tmp_path, log, pa.list_(pa.int64())))) == current_of(log)


OTHER_NAN = np.array([0xFFF8000000000001], "u8").view("f8")[0]
FLOATS = [
    (0, "a", 1, -0.0), (1, "a", 1, 0.0),
    (0, "b", 2, NAN), (2, "b", 2, OTHER_NAN), (3, "b", 2, -0.0),
    (0, "c", 3, 0.0), (0, "c", 3, -0.0), (1, "c", 3, -0.0),
    (0, "d", 4, OTHER_NAN), (0, "e", 5, -0.0), (0, "f", 6, None), (0, "f", 6, NAN), (1, "f", 6, None),
]  # fmt: skip
FLOATS_LEFT = {"b": "0.0", "c": "0.0", "d": "nan", "e": "0.0", "f": "nan"}
PLACES = {
    "value": (lambda number: number, lambda kind: kind),
    "struct": (lambda number: {"x": number, "y": "z"}, lambda kind: pa.struct([("x", kind), ("y", pa.string())])),
    "list": (lambda number: [1.5, number], pa.list_),
    "list-of-structs": (lambda number: [{"x": number}], lambda kind: pa.list_(pa.struct([("x", kind)]))),
}


@pytest.mark.parametrize("place", [*PLACES])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("most", [0, current_rows.MAX_TAKEN_ROWS], ids=["all-counted", "few-counted"])
def test_row_is_taken_back_by_one_with_the_other_zero_or_another_nan_query_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, kind: pa.DataType, place: str
) -> None:
    monkeypatch.setattr(current_rows, "MAX_TAKEN_ROWS", most)
    put, type_of = PLACES[place]
    log = [(op, name, n, put(number)) for op, name, n, number in FLOATS]

    found = ask(tmp_path, make_table(tmp_path, log, type_of(kind)))

    expected = {name: put(float(text)) for name, text in FLOATS_LEFT.items()}
    assert {row["name"]: form((row["last"],)) for row in found} == {
        name: form((value,)) for name, value in expected.items()
    }
    assert len(found) == len(expected)


def test_changelog_of_appends_is_its_own_state_in_its_order_query_3(tmp_path: Path) -> None:
    log = [(0, f"row {n}", n, 0.0) for n in range(10)]
    assert [row["n"] for row in ask(tmp_path, make_table(tmp_path, log, pa.float64()))] == [*range(10)]


def test_nothing_is_current_where_all_was_taken_back_query_3(tmp_path: Path) -> None:
    log = [(0, "a", 1, 0.5), (0, "a", 1, 0.5), (1, "a", 1, 0.5), (1, "a", 1, 0.5)]
    assert ask(tmp_path, make_table(tmp_path, log, pa.float64())) == []


@pytest.mark.parametrize("taken", [0, 100], ids=["appends", "taken-back"])
def test_limit_over_many_current_rows_needs_the_memory_of_few_query_6(tmp_path: Path, taken: int) -> None:
    count = 300_000
    numbers = [*range(count), *range(taken)]
    log = [(1 if place >= count else 0, f"{'name' * 30} {n}", n, 0.0) for place, n in enumerate(numbers)]
    table = make_table(tmp_path, log, pa.float64())
    found = ask(tmp_path, table, f"{SHOWN} LIMIT 3", memory_bytes=16 << 20)
    assert len(found) == 3
    assert all(row["n"] >= taken for row in found)


def test_rows_that_memory_does_not_hold_are_ordered_on_disk_query_6(tmp_path: Path) -> None:
    count = 100_000
    log = [(0, f"{'name' * 100} {n}", n * 7919 % count, 0.0) for n in range(count)]
    table = make_table(tmp_path, log, pa.float64())
    sql = "SELECT n, name FROM log ORDER BY n"
    found = ask(tmp_path, table, sql, memory_bytes=40 << 20)  # half of it holds no half of the rows
    assert [row["n"] for row in found] == [*range(count)]
    assert not (tmp_path / "asked" / "work").exists()


@pytest.mark.parametrize("value", [None, 7])
def test_row_with_a_null_is_found_where_it_was_taken_back_alone_in_its_file(tmp_path: Path, value: int | None) -> None:
    """A file that says of its rows that they are all null was left out of the join, and the row counted as current."""
    log = [(0, "Oslo", 700, 1.0), (0, "Rome", 2800, 1.0), (0, "Vaduz", value, 1.0), (1, "Vaduz", value, 1.0)]
    table = make_table(tmp_path, log, pa.float64())
    assert [row["name"] for row in ask(tmp_path, table)] == ["Oslo", "Rome"]


def test_join_of_nulls_finds_them_in_every_file(tmp_path: Path) -> None:
    log = [(0, "a", 1, 0.5), (0, "b", 2, 0.5), (0, "c", None, 0.5), (0, "d", None, 0.5)]
    sql = "SELECT count(*) AS n FROM log AS one JOIN (SELECT n FROM log WHERE name = 'd') AS other"
    found = ask(tmp_path, make_table(tmp_path, log, pa.float64()), f"{sql} ON one.n IS NOT DISTINCT FROM other.n")
    assert found == [{"n": 2}]
