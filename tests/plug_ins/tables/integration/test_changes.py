"""What changed between versions, and consumers that read it once (TABLE-9 to TABLE-13)."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import odf_node
from odf_node.errors import UsageError
from odf_node.front import OpenNode, Table
from odf_node.front.table_operations import ChangedRows

SCHEMA = "id BIGINT, price DOUBLE"


def row(number: int, price: float) -> dict[str, Any]:
    return {"id": number, "price": price}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenNode]:
    with odf_node.open(tmp_path_factory.mktemp("tables") / "home") as opened:
        yield opened


@pytest.fixture
def prices(node: OpenNode, request: pytest.FixtureRequest) -> Table:
    """Versions 3 to 6: two rows, one corrected and one more, one gone, one that came again."""
    table = node.create_table(f"prices.{abs(hash(request.node.name))}", SCHEMA, key=["id"])
    table.insert([row(1, 1.0), row(2, 2.0)])
    table.upsert([row(2, 2.5), row(3, 3.0)])
    table.delete(where="id = 1")
    table.upsert([row(2, 2.0)])
    return table


def plain(rows: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in rows.select([*names]).to_pylist()]


def test_changes_are_the_operations_between_versions_with_before_and_after(prices: Table) -> None:
    found = plain(prices.changes(3, 5).arrow, "_change_type", "_commit_version", "id", "price")

    assert found == [
        ("update_preimage", 4, 2, 2.0),
        ("update_postimage", 4, 2, 2.5),
        ("insert", 4, 3, 3.0),
        ("delete", 5, 1, 1.0),
    ]
    assert len(prices.changes(-1)) == len(prices.to_arrow()) == 8
    assert len(prices.changes(6)) == 0
    times = prices.changes(3).arrow.column("_commit_timestamp").to_pylist()
    assert times == sorted(times)


def test_difference_is_what_is_left_of_the_operations(prices: Table) -> None:
    found = prices.diff(3, 5)

    assert (found.changed, found.key) == (ChangedRows(1, 1, 1), ("id",))
    assert plain(found.rows, "_change_type", "_commit_version", "id", "price") == [
        ("delete", 5, 1, 1.0),
        ("update_preimage", 4, 2, 2.0),
        ("update_postimage", 4, 2, 2.5),
        ("insert", 4, 3, 3.0),
    ]


def test_difference_backwards_is_what_leads_back(prices: Table) -> None:
    assert plain(prices.diff(5, 3).rows, "_change_type", "_commit_version", "id", "price") == [
        ("insert", 5, 1, 1.0),
        ("update_preimage", 4, 2, 2.5),
        ("update_postimage", 4, 2, 2.0),
        ("delete", 4, 3, 3.0),
    ]


def test_value_that_came_back_differs_in_its_event_time_alone(prices: Table) -> None:
    found = prices.diff(3)

    assert (found.since, found.until, found.changed) == (3, 6, ChangedRows(1, 1, 1))
    before, after = (each for each in found.rows.to_pylist() if each["id"] == 2)
    assert (before["price"], before["event_time"] < after["event_time"]) == (after["price"], True)


def test_versions_without_rows_between_them_do_not_differ(prices: Table) -> None:
    for since, until in ((0, 2), (4, 4)):
        found = prices.diff(since, until)
        assert (found.changed, len(found.rows)) == (ChangedRows(0, 0, 0), 0)


def test_version_that_a_frame_gives_is_a_version(node: OpenNode, prices: Table) -> None:
    version = prices.diff(3).rows.to_pandas()["_commit_version"].min()

    assert (type(version), version) == (np.int64, 4)
    assert len(node.table(prices.record.name, version=version).state()) == 3
    assert len(prices.changes(version, version)) == 0
    assert prices.diff(version, version).since == 4
    assert prices.restore(version).version == 7
    assert prices.history()[0].detail == "version 4"


def test_rows_without_a_key_are_counted(node: OpenNode) -> None:
    table = node.create_table("counted", {"a": pa.int64()})
    first = table.insert([{"a": 1}, {"a": 1}]).version
    table.insert([{"a": 1}, {"a": 2}])
    table.delete(where="a = 2")

    found = table.diff(first)

    assert found.changed == ChangedRows(1, 0, 0)
    assert plain(found.rows, "_change_type", "_commit_version", "a") == [("insert", first + 1, 1)]


@pytest.mark.parametrize(("since", "until"), [(99, None), (3, 99), (-2, None), (5, 3), (True, None), ("3", None)])
def test_version_that_is_not_there_has_no_changes(prices: Table, since: Any, until: Any) -> None:
    with pytest.raises(UsageError):
        prices.changes(since, until)


def test_column_called_as_those_of_changes_is_an_error_that_names_it(node: OpenNode) -> None:
    table = node.create_table("taken", {"_change_type": pa.string()})
    table.insert([{"_change_type": "x"}])

    with pytest.raises(UsageError, match="_change_type"):
        table.changes(0)


def test_consumer_reads_what_is_new_and_what_it_did_not_commit_again(prices: Table) -> None:
    with prices.read_incremental("report") as first:
        assert (first.since, first.until, len(first.rows)) == (-1, 6, 8)
    prices.upsert([row(9, 9.0)])

    with suppress(ZeroDivisionError), prices.read_incremental("report") as new:
        assert plain(new.rows, "_change_type", "id") == [("insert", 9)]
        raise ZeroDivisionError
    prices.upsert([row(10, 9.0)])
    again = prices.read_incremental("report")

    assert (again.since, again.until, again.rows.equals(new.rows), again.key == new.key) == (6, 7, True, True)
    again.commit()
    again.commit()
    assert plain(prices.read_incremental("report").rows, "id") == [(10,)]
    assert prices.read_incremental("other").since == -1


def test_two_processes_under_one_name_do_not_both_move_it(prices: Table) -> None:
    one, other = prices.read_incremental("shared"), prices.read_incremental("shared")
    assert one.key == other.key
    one.commit()
    prices.upsert([row(9, 9.0)])
    prices.read_incremental("shared").commit()

    with pytest.raises(UsageError, match="another process"):
        other.commit()


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a\0", ".hidden", "x" * 101, "ä"])
def test_name_that_is_none_is_no_consumer(prices: Table, name: str) -> None:
    with pytest.raises(UsageError, match="name of a consumer"):
        prices.read_incremental(name)


def test_write_made_of_changes_is_made_once_though_its_process_is_killed_behind_it(
    node: OpenNode, prices: Table
) -> None:
    copies = node.create_table("copies", {"id": pa.int64(), "made": pa.string()})
    batch = prices.read_incremental("copier")
    # The write, and no more, as where its process is killed before the position has moved.
    given = [{"id": each, "made": "first"} for each in batch.rows.column("id").to_pylist()]
    uncommitted = type(batch)(batch.consumer, batch.since, batch.until, batch.rows, batch.key, lambda: None)
    assert copies.insert(given, consumed=uncommitted).added == 8

    again = prices.read_incremental("copier")
    made_anew = [{"id": each, "made": "again"} for each in again.rows.column("id").to_pylist()]
    written = copies.insert(made_anew, consumed=again)

    assert (written.is_repeated, len(copies.state())) == (True, 8)
    assert len(prices.read_incremental("copier").rows) == 0


def test_positions_go_with_their_dataset(tmp_path: Path) -> None:
    with odf_node.open(tmp_path / "home") as node:
        table = node.create_table("gone", SCHEMA, key=["id"])
        table.read_incremental("report").commit()
        (folder,) = (tmp_path / "home" / "consumers").iterdir()
        assert [each.name for each in sorted(folder.iterdir())] == ["report.json", "report.lock"]
        node.inner.deletion.delete(table.record)
        node.inner.sweeper.clean_up()
        assert not folder.exists()
