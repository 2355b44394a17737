"""Writes and comparisons of tables take the two zeros for one number, and all that is no number (TABLE-3, QUERY-3)."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import odf_node
from odf_node.front import OpenNode, Table
from odf_node.front.table_operations import ChangedRows
from odf_tables.errors import RowsRejectedError

NAN, OTHER_NAN = math.nan, float(np.array([0xFFF8000000000001], "u8").view("f8")[0])
INSTANT = pa.timestamp("ms", "UTC")
KINDS = [pa.float32(), pa.float64()]
PLACES = {
    "value": (lambda number: number, lambda kind: kind),
    "struct": (lambda number: {"x": number, "y": "z"}, lambda kind: pa.struct([("x", kind), ("y", pa.string())])),
    "list": (lambda number: [1.5, number], pa.list_),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenNode]:
    with odf_node.open(tmp_path_factory.mktemp("floats") / "home") as opened:
        yield opened


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"t.{abs(hash(request.node.name))}"


def frame(column: str, kind: pa.DataType, values: list[Any], **more: list[Any]) -> pa.Table:
    return pa.table(
        {column: pa.array(values, kind, from_pandas=False), **{key: pa.array(v) for key, v in more.items()}}
    )


def text(value: object) -> str:
    return repr(value).replace("-0.0", "0.0")


def state_of(node: OpenNode, table: Table, *names: str) -> list[tuple[str, ...]]:
    state = node.table(table.record.name).state().arrow
    return sorted(
        tuple(map(text, row)) for row in zip(*(state.column(each).to_pylist() for each in names), strict=True)
    )


def newest(node: OpenNode, table: Table) -> int:
    (dataset,) = node.datasets(table.record.name)
    return dataset.blocks - 1


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("key", [["k"], []], ids=["keyed", "keyless"])
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("k = 0", ["nan", "nan"]),
        ("k >= 0 AND k < 1", ["nan", "nan"]),
        ("k < 0", ["0.0", "nan", "nan"]),
        ("isnan(k)", ["0.0"]),
        ("k = CAST('NaN' AS DOUBLE)", ["0.0"]),
    ],
)
def test_condition_holds_for_both_zeros_and_for_all_that_is_no_number(
    node: OpenNode, name: str, kind: pa.DataType, key: list[str], where: str, left: list[str]
) -> None:
    table = node.create_table(name, {"k": kind, "n": pa.int64()}, key=[*key, "n"] if key else [])
    table.insert(frame("k", kind, [-0.0, NAN, OTHER_NAN], n=[1, 2, 3]))

    table.delete(where=where)

    assert [row[0] for row in state_of(node, table, "k")] == left


def test_condition_of_an_overwrite_holds_for_rows_of_the_other_zero(node: OpenNode, name: str) -> None:
    table = node.create_table(name, {"k": pa.float64(), "v": pa.string()}, key=[])
    table.insert(frame("k", pa.float64(), [-0.0, 1.0], v=["old", "stays"]))

    table.overwrite(frame("k", pa.float64(), [-0.0], v=["new"]), where="k = 0")

    assert state_of(node, table, "k", "v") == [("0.0", "'new'"), ("1.0", "'stays'")]
    with pytest.raises(RowsRejectedError, match="rows that are not of k < 0"):
        table.overwrite(frame("k", pa.float64(), [-0.0], v=["x"]), where="k < 0")


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("pair", [(0.0, -0.0), (NAN, OTHER_NAN)], ids=["zeros", "no-numbers"])
def test_row_of_the_other_zero_has_the_same_key(
    node: OpenNode, name: str, kind: pa.DataType, pair: tuple[float, float]
) -> None:
    table = node.create_table(name, {"k": kind, "v": pa.string()}, key=["k"])
    table.insert(frame("k", kind, [pair[0]], v=["a"]))

    with pytest.raises(RowsRejectedError, match="are there already") as caught:
        table.insert(frame("k", kind, [pair[1]], v=["b"]))
    assert len(caught.value.rows) == 1
    table.upsert(frame("k", kind, [pair[1]], v=["b"]))

    assert state_of(node, table, "v") == [("'b'",)]
    table.delete(where="v = 'b'")
    assert state_of(node, table, "v") == []


def test_key_of_a_keyless_table_that_rows_of_both_zeros_have_stands_twice(node: OpenNode, name: str) -> None:
    table = node.create_table(name, {"k": pa.float64(), "v": pa.string()}, key=[])
    table.insert(frame("k", pa.float64(), [-0.0, 0.0], v=["a", "b"]))

    with pytest.raises(RowsRejectedError, match="several current rows have one key"):
        table.upsert(frame("k", pa.float64(), [0.0], v=["c"]), keys=["k"])


@pytest.mark.parametrize("place", [*PLACES])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_came_again_with_other_bits_is_no_difference(
    node: OpenNode, name: str, kind: pa.DataType, place: str
) -> None:
    put, type_of = PLACES[place]
    columns = {"v": type_of(kind), "n": pa.int64(), "at": INSTANT}
    table = node.create_table(name, columns, key=[], event_time="at")
    at = pa.array([0, 0, 0], INSTANT)
    table.insert(frame("v", type_of(kind), [put(0.0), put(NAN), put(2.0)], n=[1, 2, 3], at=at))
    first = newest(node, table)
    table.delete(where="n <> 3")
    table.insert(frame("v", type_of(kind), [put(-0.0), put(OTHER_NAN)], n=[1, 2], at=at[:2]))
    last = newest(node, table)

    assert table.diff(first, last).changed == ChangedRows(0, 0, 0)
    assert table.restore(first).version == last
    assert state_of(node, table, "n", "v") == [
        (str(n), text(put(number))) for n, number in ((1, 0.0), (2, NAN), (3, 2.0))
    ]
    assert len(table.changes(first)) == 4


def test_restored_row_has_the_zero_that_it_had(node: OpenNode, name: str) -> None:
    kind = pa.struct([("x", pa.float64())])
    table = node.create_table(name, {"k": pa.float64(), "v": kind, "n": pa.int64()}, key=["n"])
    given = {"k": pa.array([-0.0, None]), "v": pa.array([{"x": -0.0}, None], kind), "n": [1, 2]}
    table.insert(pa.table(given))
    first = newest(node, table)
    table.delete(where="true")

    table.restore(first)

    found = table.changes(newest(node, table) - 1).arrow.sort_by("n").to_pylist()
    assert [repr((row["k"], row["v"])) for row in found] == ["(-0.0, {'x': -0.0})", "(None, None)"]
