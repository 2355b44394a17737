"""Frames, names and conditions that lead elsewhere: written as they are meant, or not at all (TABLE-2 to TABLE-5)."""

import decimal
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import odf_node
from odf_engines.errors import InvalidQueryError
from odf_node.errors import UsageError
from odf_node.front import OpenNode, Table
from odf_node.front.table_operations import ChangedRows
from odf_protocol.errors import MalformedError
from odf_tables.errors import RowsRejectedError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OTHER_NAN = np.array([0x7FF8000000000001], dtype="u8").view("f8")[0]
NAMES = ["../x", ".x", "[0]", "odf_n", "odf_one", "odf_both", 'a"b', "a'b", "a;--", "", " x", "a\nb", "%s", "record"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenNode]:
    with odf_node.open(tmp_path_factory.mktemp("hostile") / "home") as opened:
        yield opened


@pytest.fixture
def values(node: OpenNode, request: pytest.FixtureRequest) -> Table:
    schema = {
        "id": pa.int64(),
        "amount": pa.decimal128(10, 2),
        "at": pa.timestamp("ms", "UTC"),
        "ratio": pa.float32(),
        "clock": pa.time64("us"),
    }
    return node.create_table(f"values.{abs(hash(request.node.name))}", schema, key=["id"])


@pytest.fixture
def numbers(node: OpenNode, request: pytest.FixtureRequest) -> Table:
    table = node.create_table(f"numbers.{abs(hash(request.node.name))}", "id BIGINT, v STRING", key=["id"])
    table.insert([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    return table


def frame(**columns: pa.Array) -> pa.Table:
    given = {
        "id": pa.array([1]),
        "amount": pa.array([decimal.Decimal("1.00")]),
        "at": pa.array([0], pa.timestamp("ms", "UTC")),
        "ratio": pa.array([1.0]),
        "clock": pa.array([1], pa.time64("us")),
    }
    return pa.table(given | columns)


def state_of(node: OpenNode, table: Table, *names: str) -> list[tuple[Any, ...]]:
    state = node.table(table.record.name).state().arrow
    return sorted(zip(*(state.column(name).to_pylist() for name in names), strict=True), key=repr)


def head_of(node: OpenNode, table: Table) -> int:
    (dataset,) = node.datasets(table.record.name)
    return dataset.blocks - 1


@pytest.mark.parametrize(
    ("column", "given", "expected"),
    [
        ("at", pa.array([-1], pa.timestamp("us")), EPOCH - timedelta(milliseconds=1)),
        ("at", pa.array([1_000_999], pa.timestamp("ns", "Europe/Berlin")), EPOCH + timedelta(milliseconds=1)),
        ("at", pa.array([60], pa.timestamp("s")), EPOCH + timedelta(minutes=1)),
        ("amount", pa.array([3]), decimal.Decimal("3.00")),
        ("amount", pa.array([decimal.Decimal("1.2300")], pa.decimal128(10, 4)), decimal.Decimal("1.23")),
        ("amount", pa.array([decimal.Decimal("7.25")], pa.decimal256(40, 2)), decimal.Decimal("7.25")),
        ("ratio", pa.array([math.inf]), math.inf),
        ("clock", pa.array([3], pa.time32("s")), (EPOCH + timedelta(seconds=3)).time()),
    ],
)
@pytest.mark.parametrize("write", ["insert", "overwrite"])
def test_value_of_another_unit_is_the_same_value(
    node: OpenNode, values: Table, column: str, given: pa.Array, expected: object, write: str
) -> None:
    getattr(values, write)(frame(**{column: given}))

    assert state_of(node, values, column) == [(expected,)]


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("at", pa.array([2**61], pa.timestamp("s"))),
        ("amount", pa.array([123_456_789])),
        ("amount", pa.array([decimal.Decimal("1.2345")], pa.decimal128(10, 4))),
        ("amount", pa.array([math.nan])),
        ("ratio", pa.array([1e300])),
        ("id", pa.array([4.5])),
        ("clock", pa.array([1], pa.time64("ns"))),
    ],
)
@pytest.mark.parametrize("write", ["insert", "overwrite"])
def test_value_that_does_not_fit_is_named_with_its_row_and_nothing_is_written(
    node: OpenNode, values: Table, column: str, given: pa.Array, write: str
) -> None:
    values.insert(frame(id=pa.array([7])))
    before = head_of(node, values)

    with pytest.raises(RowsRejectedError) as caught:
        getattr(values, write)(frame(**{column: given}))

    assert caught.value.rows[0] == {"row": 0, column: "does not fit the type"}
    assert head_of(node, values) == before


def test_row_at_fault_is_counted_in_the_frame_of_an_overwrite(node: OpenNode, values: Table) -> None:
    values.insert(frame(id=pa.array([7])))

    with pytest.raises(RowsRejectedError) as caught:
        values.overwrite(frame(at=pa.array([253_402_300_800_000], pa.timestamp("ms", "UTC"))))

    assert caught.value.rows[0]["row"] == 0


@pytest.mark.parametrize("twice", [[0.0, -0.0], [math.nan, OTHER_NAN]], ids=["zeros", "no-numbers"])
@pytest.mark.parametrize("write", ["insert", "upsert", "overwrite"])
def test_key_that_merges_take_for_another_one_stands_twice(
    node: OpenNode, twice: list[float], write: str, request: pytest.FixtureRequest
) -> None:
    table = node.create_table(f"f.{abs(hash(request.node.name))}", {"k": pa.float64(), "v": pa.string()}, key=["k"])

    with pytest.raises(RowsRejectedError, match="a row before has the same key"):
        getattr(table, write)(pa.table({"k": pa.array(twice, from_pandas=False), "v": ["a", "b"]}))

    assert state_of(node, table, "v") == []


def test_ten_thousand_rows_of_one_key_are_counted(numbers: Table) -> None:
    many = 10_001

    with pytest.raises(RowsRejectedError) as caught:
        numbers.insert(pa.table({"id": [3] * many, "v": ["x"] * many}))

    assert (caught.value.count, len(caught.value.rows)) == (many - 1, 5)


@pytest.mark.parametrize("name", NAMES)
def test_column_of_any_name_is_written_compared_and_restored(node: OpenNode, name: str) -> None:
    number = NAMES.index(name)
    table = node.create_table(f"name{number}", {"id": pa.int64(), name: pa.string()}, key=["id", name])
    table.insert([{"id": 1, name: "a"}])
    first = head_of(node, table)
    table.overwrite([{"id": 1, name: "b"}])

    restored = table.restore(first)

    assert (restored.added, restored.retracted) == (1, 1)
    assert state_of(node, table, "id", name) == [(1, "a")]
    assert table.diff(first, first + 1).changed == ChangedRows(1, 0, 1)


@pytest.mark.parametrize("name", ["a\0b", "__index_level_0__"])
def test_column_that_nothing_could_name_is_rejected(node: OpenNode, numbers: Table, name: str) -> None:
    with pytest.raises(UsageError):
        node.create_table("never.made", {"id": pa.int64(), name: pa.string()})
    assert "never.made" not in [each.name for each in node.datasets()]


def test_column_that_nothing_could_name_does_not_come(node: OpenNode, numbers: Table) -> None:
    before = head_of(node, numbers)

    with pytest.raises(UsageError, match=r"U\+0000"):
        numbers.insert([{"id": 3, "v": "c", "a\0b": 1}], merge_schema=True)

    assert head_of(node, numbers) == before


@pytest.mark.parametrize(
    "where",
    [
        "1=1; DROP TABLE odf_now",
        "EXISTS (SELECT * FROM '/etc/passwd')",
        "EXISTS (SELECT * FROM read_csv('/etc/passwd'))",
        "EXISTS (SELECT 1 FROM others)",
        "id = 1) OR (true",
        "v = 'b') IS NULL AND (true",
        "id = 1) --",
        "id = 1 /*",
        "id = 1\0",
        "",
        "op = 0",
        "'x'",
    ],
)
def test_condition_that_is_none_writes_nothing(node: OpenNode, numbers: Table, where: str) -> None:
    if "others" not in [each.name for each in node.datasets()]:
        node.create_table("others", "id BIGINT")
    before = head_of(node, numbers)

    for write in (lambda: numbers.delete(where=where), lambda: numbers.overwrite([{"id": 1, "v": "z"}], where=where)):
        with pytest.raises((UsageError, InvalidQueryError, MalformedError)):
            write()

    assert head_of(node, numbers) == before


@pytest.mark.parametrize("where", [None, 7, b"true", True])
def test_condition_that_is_no_text_deletes_nothing(node: OpenNode, numbers: Table, where: Any) -> None:
    with pytest.raises(UsageError, match="a condition is a text in SQL"):
        numbers.delete(where=where)

    assert len(state_of(node, numbers, "id")) == 2


def test_brackets_in_texts_and_comments_of_a_condition_are_no_brackets(node: OpenNode, numbers: Table) -> None:
    assert numbers.delete(where="(v <> ')') AND id = 1 -- )").retracted == 1


@pytest.mark.parametrize("version", [-1, 99, 2**70, 1.0, "1", True, [1], math.nan], ids=str)
def test_version_that_is_none_is_rejected(node: OpenNode, numbers: Table, version: Any) -> None:
    for read in (
        lambda: node.table(numbers.record.name, version=version),
        lambda: numbers.restore(version),
        lambda: numbers.diff(version, 1),
        lambda: numbers.diff(1, version),
    ):
        with pytest.raises(UsageError):
            read()


@pytest.mark.parametrize("keys", [["id", "id"], [1], ["items"]], ids=str)
def test_keys_that_are_none_are_rejected(node: OpenNode, keys: Any, request: pytest.FixtureRequest) -> None:
    schema = {"id": pa.int64(), "items": pa.list_(pa.int64())}
    table = node.create_table(f"keys.{abs(hash(request.node.name))}", schema)

    with pytest.raises(UsageError):
        table.upsert(pa.table({"id": [1], "items": [[1]]}), keys=keys)
