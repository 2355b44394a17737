"""Clauses FUSION-3, FUSION-4, FUSION-5 and FUSION-12: what the DataFusion engine takes, and what it says of it."""

import math
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datafusion import DataFrame

from odf_engines.contract import Finding
from odf_engines.datafusion import transform
from odf_engines.datafusion.context import make_context
from odf_engines.datafusion.functions import AGGREGATES, FUNCTIONS, PINNED, REJECTED, WINDOWS
from odf_engines.datafusion.gate import find_limits
from odf_engines.datafusion.relations import empty_rows
from odf_engines.datafusion.transform import plan_transform
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from support.transforms import ORDERS, orders_input, transform_request, transform_sql, write_orders

MEMORY_BYTES = 256 * 1024**2

# What nobody has to miss: metadata of columns, which no slice keeps.
LEFT_OUT = {"arrow_field", "arrow_metadata", "with_metadata"}


def plan(folder: Path, *queries: str | tuple[str, str]) -> DataFrame:
    context = make_context(MEMORY_BYTES, is_repeatable=True)
    rows = empty_rows(context, ORDERS, folder / "orders", alias="orders")
    return plan_transform(context, transform_sql(*queries), {"orders": rows})


def stated_of(folder: Path, *queries: str | tuple[str, str]) -> dict[str, Finding]:
    return {each.expression: each for each in find_limits(plan(folder, *queries), operations={"op"}, op="op")}


def test_step_says_which_rows_of_each_input_its_reader_found(tmp_path: Path) -> None:
    path = write_orders(tmp_path / "orders.parquet", [(at, 0, at, at, "new", 1.0) for at in range(10)])
    source = orders_input([path], (3, 7))
    request = transform_request("SELECT event_time FROM orders", source, replace(orders_input(), alias="others"))
    answer = transform.run(request, tmp_path, MEMORY_BYTES)
    assert answer["inputs"] == [{"rows": 5, "first": 3, "last": 7}, {"rows": 0, "first": None, "last": None}]
    assert answer["rows_out"] == 5


def test_every_function_of_the_library_was_looked_at() -> None:
    context = make_context(MEMORY_BYTES, is_repeatable=False)
    assert set(context.udfs()) == (FUNCTIONS | REJECTED.keys() - {"approx_distinct"} | LEFT_OUT)
    assert set(context.udafs()) == AGGREGATES | {"approx_distinct"}
    assert set(context.udwfs()) == WINDOWS
    assert not REJECTED.keys() & (FUNCTIONS | AGGREGATES | WINDOWS)
    assert PINNED.keys() <= FUNCTIONS | AGGREGATES | WINDOWS


@pytest.mark.parametrize(
    "expression",
    [
        "now()", "current_timestamp", "current_date", "current_time", "today()", "random()", "rand()", "uuid()",
        "version()", '"now"()', "ln(amount)", "power(amount, 2)", "coalesce(amount, random())",
        "(SELECT max(now()))", "CASE WHEN exists(SELECT uuid()) THEN 1 END",
    ],
)  # fmt: skip
def test_what_nobody_can_repeat_is_rejected_with_what_to_write_instead(tmp_path: Path, expression: str) -> None:
    with pytest.raises(NotReproducibleError) as caught:
        plan(tmp_path, f"SELECT event_time, {expression} AS x FROM orders")
    assert caught.value.rewrite


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, row_number() OVER () AS n FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders)",
        "(SELECT event_time FROM orders UNION ALL SELECT event_time FROM orders) LIMIT 3",
        "SELECT event_time, sum(id) AS x FROM (SELECT * FROM orders UNION SELECT * FROM orders) GROUP BY event_time",
        "SELECT max(event_time) AS event_time FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders)",
        "SELECT DISTINCT ON (id) event_time, id FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders)",
        "SELECT event_time, array_agg(DISTINCT id) AS x FROM orders GROUP BY event_time",
        "SELECT event_time, sum(DISTINCT amount) AS x FROM orders GROUP BY event_time",
        "SELECT event_time, regr_slope(DISTINCT amount, id) AS x FROM orders GROUP BY event_time",
        "SELECT event_time, nth_value(DISTINCT id, 1) AS x FROM orders GROUP BY event_time",
        "SELECT event_time FROM orders WHERE id > (SELECT mean(DISTINCT amount) FROM orders)",
        "SELECT max(event_time) AS event_time, approx_distinct(id) AS x FROM orders",
    ],
)
def test_what_differs_from_run_to_run_is_rejected(tmp_path: Path, query: str) -> None:
    with pytest.raises(NotReproducibleError):
        plan(tmp_path, query)


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO '/exchange/out/x.csv'", "CREATE VIEW v AS SELECT 1", "CREATE TABLE t AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "INSERT INTO orders SELECT * FROM orders",
        "SET datafusion.execution.target_partitions = 4", "EXPLAIN SELECT event_time FROM orders", "DESCRIBE orders",
        "SHOW TABLES", "PREPARE p AS SELECT 1", "SELECT * FROM '/etc/passwd'", "SELECT * FROM \"/etc/passwd.csv\"",
        "SELECT * FROM information_schema.tables", "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM generate_series(1, 3)", "SELECT * FROM range(3)", "SELECT @@version AS v", "DROP TABLE orders",
        "SELECT event_time FROM orders; SELECT event_time FROM orders", "SELECT 1 AS \"a\0b\"", "",
    ],
)  # fmt: skip
def test_what_is_no_query_over_inputs_is_invalid(tmp_path: Path, query: str) -> None:
    with pytest.raises(InvalidQueryError):
        plan(tmp_path, query)


@pytest.mark.parametrize(
    "queries",
    [
        ["SELECT op, event_time, id FROM orders UNION ALL SELECT op, event_time, id FROM orders ORDER BY id"],
        ["SELECT event_time, id FROM orders WHERE id IN (SELECT id FROM orders UNION SELECT 1)"],
        [("both", "SELECT * FROM orders UNION ALL SELECT * FROM orders"), "SELECT op, event_time, id FROM both"],
        ["SELECT event_time, count(*) AS n FROM (SELECT * FROM orders UNION SELECT * FROM orders) GROUP BY event_time"],
    ],
)
def test_union_that_gives_one_bag_of_rows_is_taken_and_its_order_told(tmp_path: Path, queries: list[str]) -> None:
    assert "not their order" in stated_of(tmp_path, *queries)["UNION"].reason


def test_rows_of_a_union_are_written_in_the_order_of_all_columns(tmp_path: Path) -> None:
    rows = [(at, 0, at, 9 - at % 5, f"s{at % 3}", -0.0 if at % 2 else 0.0) for at in range(200)]
    source = orders_input([write_orders(tmp_path / "orders.parquet", rows)], (0, 199))
    sql = "SELECT event_time, amount, status FROM orders UNION ALL SELECT event_time, amount, status FROM orders"
    answer = transform.run(transform_request(sql, source), tmp_path, MEMORY_BYTES)
    assert answer["is_ordered"] is False
    written = pq.read_table(tmp_path / "data.parquet").drop_columns(["offset", "op", "system_time"]).to_pylist()
    assert len(written) == 400
    order = [(each["event_time"], math.copysign(1, each["amount"]), each["status"]) for each in written]
    assert order == sorted(order)


def test_step_cannot_take_the_name_of_an_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="called orders"):
        plan(tmp_path, ("orders", "SELECT event_time FROM orders"), "SELECT event_time FROM orders")


def test_map_that_passes_operations_on_promises_all_it_can(tmp_path: Path) -> None:
    assert stated_of(tmp_path, "SELECT op, event_time, id + 1 AS next FROM orders") == {}


@pytest.mark.parametrize(
    ("query", "expression", "reason"),
    [
        ("SELECT op, event_time, id FROM orders WHERE status = 'new'", "Filter", "loses its other half"),
        ("SELECT event_time, id FROM orders", "op", "become appends"),
        ("SELECT op, event_time, id FROM orders ORDER BY id", "Sort", "does not order"),
        ("SELECT op, event_time FROM orders LIMIT 1", "Limit", "one step"),
        ("SELECT max(event_time) AS event_time FROM orders", "Aggregate", "one step"),
        ("SELECT op, event_time, id FROM orders WHERE id IN (SELECT max(id) FROM orders)", "Aggregate", "one step"),
        ("SELECT op, event_time, lag(id) OVER (ORDER BY id) AS x FROM orders", "WindowAggr", "one step"),
        ("SELECT a.op, a.event_time FROM orders a JOIN orders b ON a.id = b.id", "Join", "one step"),
        ("SELECT op, event_time, upper(status) AS x FROM orders", "upper", "tables"),
        ("SELECT max(event_time) AS event_time, sum(amount) AS x FROM orders", "sum", "order of rows"),
    ],
)  # fmt: skip
def test_what_a_query_does_not_promise_is_said(tmp_path: Path, query: str, expression: str, reason: str) -> None:
    assert reason in stated_of(tmp_path, query)[expression].reason
