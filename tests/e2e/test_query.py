"""Questions over datasets: the changelog as it was at a time, the current rows, and nothing else."""

from functools import cache
from typing import Any

import pytest

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.errors import InvalidQueryError
from odf_protocol.events import (
    DataTypeInt32,
    DataTypeInt64,
    DataTypeString,
    DataTypeTime,
    DataTypeUInt64,
    MergeStrategyUpsertStream,
    ReadStepCsv,
)
from odf_protocol.timestamp import Timestamp
from support.ingests import RootDataset, engine_session, rows_of, schema

pytestmark = pytest.mark.spark

DAYS = ("2024-02-01T00:00:00Z", "2024-02-02T00:00:00Z", "2024-02-03T00:00:00Z")


@cache
def accounts() -> RootDataset:
    types = {"op": DataTypeInt32(), "account": DataTypeString(), "balance": DataTypeInt64()}
    dataset = RootDataset(
        ReadStepCsv(header=True, schema=schema(**types)), MergeStrategyUpsertStream(primary_key=("account",))
    )
    for day, source in zip(DAYS, ("0,ann,1\n0,bob,2\n", "0,ann,5\n1,bob,\n", "0,bob,7\n1,ann,\n"), strict=True):
        dataset.ingest("op,account,balance\n" + source, system_time=day)
    return dataset


def ask(sql: str, *tables: QueryTable, as_of: str | None = None, max_rows: int | None = None) -> list[dict[str, Any]]:
    instant = None if as_of is None else Timestamp.parse(as_of)
    shown = tables or (accounts().table("my.accounts"),)
    return rows_of(
        engine_session().query(QueryRequest(tables=shown, sql=sql, as_of=instant, max_rows=max_rows)).result_path
    )


@pytest.mark.parametrize("name", ["my.accounts", "`my.accounts`", "My.ACCOUNTS"])
def test_dataset_is_its_changelog_under_its_name(name: str) -> None:
    rows = ask(f"SELECT offset, op, account, balance FROM {name} ORDER BY offset")
    assert [tuple(row.values()) for row in rows] == [
        (0, 0, "ann", 1),
        (1, 0, "bob", 2),
        (2, 2, "ann", 1),
        (3, 3, "ann", 5),
        (4, 1, "bob", 2),
        (5, 1, "ann", 5),
        (6, 0, "bob", 7),
    ]


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        pytest.param("2024-01-31T23:59:59Z", [], id="before-the-first-row"),
        pytest.param(DAYS[0], [("ann", 1), ("bob", 2)], id="first-day"),
        pytest.param("2024-02-02T12:00:00Z", [("ann", 5)], id="after-correction-and-retraction"),
        pytest.param(None, [("bob", 7)], id="now"),
    ],
)
def test_state_is_the_rows_in_force_at_a_time(as_of: str | None, expected: list[tuple[str, int]]) -> None:
    rows = ask("SELECT account, balance FROM my.accounts__state ORDER BY account", as_of=as_of)
    assert [tuple(row.values()) for row in rows] == expected


def test_state_keeps_equal_rows_apart() -> None:
    dataset = RootDataset(ReadStepCsv(schema=schema(a=DataTypeInt64())))
    dataset.ingest("1\n1\n2\n")
    rows = ask("SELECT a FROM t__state ORDER BY a", dataset.table("t"))
    assert [row["a"] for row in rows] == [1, 1, 2]


def test_dataset_without_rows_can_be_asked() -> None:
    table = accounts().table("t")
    empty = QueryTable(name="t", vocabulary=table.vocabulary, schema=table.schema)
    assert ask("SELECT * FROM t", empty) == []


def test_types_that_spark_lacks_can_be_asked() -> None:
    dataset = RootDataset(ReadStepCsv(schema=schema(u=DataTypeUInt64(), t=DataTypeTime())))
    dataset.ingest("18446744073709551615,00:00:01\n")
    (row,) = ask("SELECT u, t FROM x", dataset.table("x"))
    assert (int(row["u"]), row["t"]) == (2**64 - 1, 1000)


def test_answer_is_cut_at_the_number_of_rows_asked_for() -> None:
    assert [row["offset"] for row in ask("SELECT offset FROM my.accounts ORDER BY offset DESC", max_rows=2)] == [6, 5]


def test_columns_of_one_name_are_told_apart() -> None:
    assert ask("SELECT 1 AS a, 2 AS a") == [{"a": 1, "a_2": 2}]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        pytest.param("DROP VIEW `my.accounts`", "only a query is allowed", id="command"),
        pytest.param("SELECT * FROM elsewhere", "elsewhere; known are: my.accounts", id="unknown-table"),
        pytest.param("SELECT * FROM My.Acounts", "did you mean my.accounts?", id="nearly-a-table"),
        pytest.param("SELECT nope FROM my.accounts", "nope", id="unknown-column"),
        pytest.param("SELECT 1 / 0", "Division by zero", id="value-it-fails-on"),
        pytest.param("SELECT * FROM parquet.`/etc/passwd`", "unknown relation", id="file"),
        pytest.param("SELEC 1", "SELEC", id="no-sql"),
    ],
)
def test_what_is_no_query_over_the_tables_is_rejected(sql: str, message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        ask(sql)
