"""Tables written through Python's front: each write is one commit, or nothing (TABLE-1 to TABLE-7, PYTHON-7)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import odf_node
from odf_node.errors import UsageError
from odf_node.front import OpenNode, Table
from odf_node.front.table_operations import ChangedRows
from odf_node.records.errors import VersionMovedError
from odf_node.records.ingests import KeyReusedError
from odf_protocol.errors import MalformedError
from odf_tables.errors import RowsRejectedError, SchemaMismatchError

SCHEMA = "id BIGINT, name STRING, price DOUBLE"
NAME = "shop.prices"


def row(number: int, name: str | None = "a", price: float | None = 1.0) -> dict[str, Any]:
    return {"id": number, "name": name, "price": price}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenNode]:
    with odf_node.open(tmp_path_factory.mktemp("tables") / "home") as opened:
        yield opened


@pytest.fixture
def prices(node: OpenNode, request: pytest.FixtureRequest) -> Table:
    table = node.create_table(f"prices.{abs(hash(request.node.name))}", SCHEMA, key=["id"])
    table.insert([row(1), row(2, "b", 2.0)])
    return table


@pytest.fixture
def log(node: OpenNode, request: pytest.FixtureRequest) -> Table:
    table = node.create_table(f"log.{abs(hash(request.node.name))}", {"a": pa.int32(), "b": pa.string()})
    table.insert([{"a": 1, "b": "x"}] * 3)
    return table


def rows_of(node: OpenNode, table: Table, **at: Any) -> list[tuple[Any, ...]]:
    state = node.table(table.record.name, **at).state().arrow
    names = [name for name in state.column_names if name != "event_time"]
    return sorted(zip(*(state.column(name).to_pylist() for name in names), strict=True), key=repr)


def head_of(node: OpenNode, table: Table) -> int:
    (dataset,) = node.datasets(table.record.name)
    return dataset.blocks - 1


def test_created_table_is_an_own_root_that_is_empty(node: OpenNode) -> None:
    table = node.create_table(NAME, SCHEMA, key=["id"])

    assert (rows_of(node, table), node.datasets(NAME)[0].kind) == ([], "Root")
    assert table.schema.field("id") == pa.field("id", pa.int64(), nullable=False)
    with pytest.raises(UsageError, match="already"):
        node.create_table(NAME, SCHEMA)


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (SCHEMA, {"key": ["no"]}, "'no' of the key"),
        ("offset BIGINT", {}, "the node's own"),
        ({}, {}, "at least one column"),
        ({"a": pa.map_(pa.string(), pa.string())}, {}, "'a'"),
        ({"a": pa.list_(pa.int64())}, {"key": ["a"]}, "no key"),
        ({"event_time": pa.string()}, {}, "expected a timestamp or date"),
        (SCHEMA, {"event_time": "at"}, "'at' of event times"),
    ],
)
def test_schema_that_cannot_be_a_table_is_rejected_and_no_dataset_is_made(
    node: OpenNode, schema: object, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        node.create_table("never.made", schema, **options)
    assert "never.made" not in [each.name for each in node.datasets()]


def test_name_that_is_none_is_rejected(node: OpenNode) -> None:
    with pytest.raises(MalformedError):
        node.create_table("no name", SCHEMA)


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"id": [3], "name": ["c"], "price": [3.0]}),
        pd.DataFrame({"price": [3.0], "id": [3], "name": ["c"]}, index=["x"]),
        pl.DataFrame({"id": [3], "name": ["c"], "price": [3.0]}),
        [row(3, "c", 3.0)],
        pa.table({"id": pa.array([3], pa.int8()), "name": pa.array(["c"]).dictionary_encode(), "price": [3]}),
    ],
    ids=["arrow", "pandas", "polars", "rows", "narrower-types"],
)
def test_frame_of_any_kind_is_inserted(node: OpenNode, prices: Table, frame: object) -> None:
    written = prices.insert(frame)

    assert (written.operation, written.added, written.version) == ("insert", 1, head_of(node, prices))
    assert rows_of(node, prices) == [(1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)]


def test_relation_of_duckdb_is_inserted(node: OpenNode, prices: Table) -> None:
    duckdb = pytest.importorskip("duckdb")

    prices.insert(duckdb.sql("SELECT 3::BIGINT AS id, 'c' AS name, 3.0::DOUBLE AS price"))

    assert rows_of(node, prices)[-1] == (3, "c", 3.0)


def test_upsert_corrects_what_differs_adds_what_is_new_and_leaves_the_rest(node: OpenNode, prices: Table) -> None:
    written = prices.upsert([row(1), row(2, "b", 2.5), row(3, None, None)])

    assert (written.added, written.corrected, written.retracted) == (1, 1, 0)
    assert rows_of(node, prices) == [(1, "a", 1.0), (2, "b", 2.5), (3, None, None)]
    events = prices.to_arrow().select(["op", "id", "price"]).to_pylist()[2:]
    assert [tuple(each.values()) for each in events] == [(2, 2, 2.0), (3, 2, 2.5), (0, 3, None)]


def test_write_that_changes_nothing_makes_no_version(node: OpenNode, prices: Table) -> None:
    before = head_of(node, prices)

    assert prices.upsert([row(1)]).version == before
    assert prices.delete(where="id = 77").version == before
    assert prices.restore(before).version == before
    assert head_of(node, prices) == before


def test_delete_retracts_the_rows_of_a_condition(node: OpenNode, prices: Table) -> None:
    assert prices.delete(where="price > 1.5").retracted == 1
    assert rows_of(node, prices) == [(1, "a", 1.0)]


def test_overwrite_puts_rows_in_the_place_of_those_of_its_condition(node: OpenNode, prices: Table) -> None:
    prices.upsert([row(3, "b", 3.0)])

    written = prices.overwrite([row(2, "b", 2.5), row(4, "b", 4.0)], where="name = 'b'")

    assert (written.added, written.corrected, written.retracted) == (1, 1, 1)
    assert rows_of(node, prices) == [(1, "a", 1.0), (2, "b", 2.5), (4, "b", 4.0)]
    prices.overwrite([row(9)])
    assert rows_of(node, prices) == [(9, "a", 1.0)]


def test_table_without_a_key_counts_equal_rows(node: OpenNode, log: Table) -> None:
    first = head_of(node, log)
    log.insert([{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    assert log.delete(where="a = 1").retracted == 4
    assert rows_of(node, log) == [(2, None)]
    log.overwrite([{"a": 5, "b": "y"}])

    restored = log.restore(first)

    assert (restored.added, restored.retracted) == (3, 1)
    assert rows_of(node, log) == [(1, "x")] * 3


def test_table_without_a_key_is_upserted_by_columns_that_tell_its_rows_apart(node: OpenNode, log: Table) -> None:
    with pytest.raises(UsageError, match="has no key"):
        log.upsert([{"a": 1, "b": "z"}])
    with pytest.raises(RowsRejectedError, match="several current rows have one key"):
        log.upsert([{"a": 1, "b": "z"}], keys=["a"])
    log.overwrite([{"a": 1, "b": "x"}, {"a": 2, "b": "x"}])

    assert log.upsert([{"a": 1, "b": "z"}], keys=["a"]).corrected == 1
    assert rows_of(node, log) == [(1, "z"), (2, "x")]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([row(3), row(4), row(3, "b")], "same key (id) (1 row): row 2, id 3"),
        ([row(3), {"id": None, "name": "x", "price": 1.0}], "'id' (1 row): row 1, id None"),
        ([row(1)], "there already (upsert corrects them): id 1"),
        ([row(3), {"id": 4.5, "name": "x", "price": 1.0}], "row 1, id 'does not fit the type'"),
    ],
)
def test_rows_that_do_not_fit_are_shown_and_nothing_is_written(
    node: OpenNode, prices: Table, frame: object, message: str
) -> None:
    before = head_of(node, prices)

    with pytest.raises(RowsRejectedError) as caught:
        prices.insert(frame)

    assert message in str(caught.value)
    assert caught.value.rows
    assert (head_of(node, prices), len(rows_of(node, prices)), len(prices.quarantine())) == (before, 2, 0)


@pytest.mark.parametrize(
    ("frame", "differences"),
    [
        ([{"name": "x", "price": 1.0}], ("- id int64",)),
        ([row(3) | {"more": 1}], ("+ more int64",)),
        ([{"id": "3", "name": "x", "price": 1.0}], ("~ id: expected int64, found string",)),
        (
            [{"id": 3, "name": 7, "prize": 1.0}],
            ("+ prize double", "~ name: expected string, found int64", "- price double"),
        ),
    ],
)
def test_other_schema_is_shown_by_columns_and_nothing_is_written(
    node: OpenNode, prices: Table, frame: object, differences: tuple[str, ...]
) -> None:
    before = head_of(node, prices)

    for write in (prices.insert, prices.upsert, prices.overwrite):
        with pytest.raises(SchemaMismatchError) as caught:
            write(frame)
        assert caught.value.differences == differences
    assert head_of(node, prices) == before


@pytest.mark.parametrize("frame", [7, "text", [1], None], ids=str)
def test_what_is_no_frame_is_rejected(prices: Table, frame: object) -> None:
    with pytest.raises(UsageError):
        prices.insert(frame)


def test_rows_outside_of_the_condition_of_an_overwrite_are_rejected(node: OpenNode, prices: Table) -> None:
    before = head_of(node, prices)

    with pytest.raises(RowsRejectedError, match="rows that are not of id = 2: id 1"):
        prices.overwrite([row(1)], where="id = 2")
    assert head_of(node, prices) == before


def test_columns_come_where_the_write_allows_it(node: OpenNode, prices: Table) -> None:
    before = head_of(node, prices)

    prices.upsert([row(1) | {"more": 7}], merge_schema=True, if_version=before)

    assert rows_of(node, prices) == [(1, "a", 1.0, 7), (2, "b", 2.0, None)]
    assert rows_of(node, prices, version=before) == [(1, "a", 1.0), (2, "b", 2.0)]
    assert [each.operation for each in prices.history()[:2]] == ["upsert", "schema"]
    node.ingest(prices.record.name, pa.table({"id": [3], "name": ["c"], "price": [1.0], "more": [8]}))
    assert rows_of(node, prices)[-1] == (3, "c", 1.0, 8)


def test_write_is_made_once_under_a_key(node: OpenNode, prices: Table) -> None:
    first = prices.insert([row(3)], idempotency_key="monday")
    again = prices.insert([row(3)], idempotency_key="monday")

    assert (again.is_repeated, again.version, again.added) == (True, first.version, 1)
    with pytest.raises(KeyReusedError):
        prices.insert([row(4)], idempotency_key="monday")
    assert len(rows_of(node, prices)) == 3


def test_write_that_follows_another_version_is_rejected(node: OpenNode, prices: Table) -> None:
    before = head_of(node, prices)
    prices.upsert([row(7)], if_version=before)

    with pytest.raises(VersionMovedError):
        prices.delete(where="true", if_version=before)
    assert len(rows_of(node, prices)) == 3


def test_earlier_table_is_read_and_not_written(node: OpenNode, prices: Table) -> None:
    before = head_of(node, prices)
    prices.delete(where="true")

    earlier = node.table(prices.record.name, version=before)

    assert len(earlier.state()) == len(earlier.to_arrow()) == 2
    with pytest.raises(UsageError, match="cannot be written"):
        earlier.insert([row(5)])
    with pytest.raises(UsageError, match="no version 99; its versions are 0 to"):
        node.table(prices.record.name, version=99)


def test_history_states_what_each_write_did(node: OpenNode, prices: Table) -> None:
    prices.upsert([row(1, "z"), row(3)])
    prices.delete(where="id = 3")
    prices.restore(3)

    found = [(each.operation, each.changed, each.detail) for each in prices.history()]

    assert found == [
        ("restore", ChangedRows(0, 1, 0), "version 3"),
        ("delete", ChangedRows(0, 0, 1), "id = 3"),
        ("upsert", ChangedRows(1, 1, 0), ""),
        ("insert", ChangedRows(2, 0, 0), ""),
        ("schema", None, ""),
    ]


def test_what_was_written_is_pulled_and_verified_by_another_node(node: OpenNode, prices: Table, tmp_path: Path) -> None:
    prices.upsert([row(1, "z")])
    prices.delete(where="id = 2")

    (finding,) = node.verify(prices.record.name)

    assert (finding.problem, finding.signed, finding.rows) == ("", True, 5)


def test_event_time_of_a_column_is_kept(node: OpenNode) -> None:
    table = node.create_table("visits", {"at": pa.timestamp("us"), "who": pa.string()}, key=["who"], event_time="at")
    moment = pd.Timestamp("2020-10-01T12:00:00")

    table.insert(pa.table({"at": [moment], "who": ["x"]}))

    assert table.schema.names == ["offset", "op", "system_time", "at", "who"]
    assert node.table("visits").state().arrow.column("at").to_pylist()[0].isoformat() == "2020-10-01T12:00:00+00:00"


def test_values_in_conditions_and_names_cannot_reach_beyond_their_place(node: OpenNode) -> None:
    table = node.create_table("quoted", {'a"b': pa.int64(), "c;--": pa.string()}, key=['a"b'])
    table.insert([{'a"b': 1, "c;--": "x"}, {'a"b': 2, "c;--": "y"}])

    with pytest.raises(UsageError, match="bracket"):
        table.delete(where="true) UNION ALL (SELECT 1")
    assert table.delete(where='"a""b" = 1').retracted == 1
    assert table.upsert([{'a"b': 2, "c;--": "z"}]).corrected == 1
