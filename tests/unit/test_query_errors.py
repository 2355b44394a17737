"""Clauses QUERY-7 and QUERY-15: DataFusion's own SQL over tables, and what is told of a mistake."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.datafusion import query
from odf_engines.errors import InvalidQueryError
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

ROWS = pa.table(
    {
        "offset": pa.array([0, 1, 2], pa.int64()),
        "op": pa.array([0, 0, 0], pa.int32()),
        "system_time": pa.array([0, 0, 0], pa.timestamp("ms", "UTC")),
        "city": ["Bern", "Oslo", "Rome"],
        "amount": pa.array([1, 2, 6], pa.decimal128(10, 2)),
        "share": [0.5, 1.5, 2.5],
    }
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[QueryTable, ...]:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(ROWS, path)
    schema, known = data_schema_of(ROWS.schema), Vocabulary(event_time="city")
    return tuple(
        QueryTable(name=name, vocabulary=known, schema=schema, slices=(path,)) for name in ("my.cities", "orders")
    )


def ask(folder: Path, tables: tuple[QueryTable, ...], sql: str) -> list[tuple[Any, ...]]:
    request = QueryRequest(tables=tables, sql=sql, known=(*(each.name for each in tables), "net.flows"))
    query.run(request, folder, 256 << 20)
    return [tuple(row.values()) for row in pq.read_table(folder / "result.parquet").to_pylist()]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        pytest.param('SELECT "city" FROM "my.cities" ORDER BY city LIMIT 1', [("Bern",)], id="double-quotes"),
        pytest.param("SELECT `city` FROM `my.cities` ORDER BY city LIMIT 1", [("Bern",)], id="back-ticks"),
        pytest.param("SELECT My.Cities.city FROM my.cities ORDER BY 1 LIMIT 1", [("Bern",)], id="neither"),
        pytest.param("SELECT city FROM my.cities__state ORDER BY 1 DESC LIMIT 1", [("Rome",)], id="state"),
        pytest.param("SELECT CAST(avg(amount) AS DOUBLE) FROM orders", [(3.0,)], id="mean-of-decimals"),
        pytest.param("SELECT sum(share) FROM orders", [(4.5,)], id="sum-of-floats"),
        pytest.param("SELECT count(*) FROM (SELECT * FROM orders LIMIT 2)", [(2,)], id="limit-without-order"),
        pytest.param("SELECT rank() OVER (ORDER BY share DESC) FROM orders WHERE city = 'Rome'", [(1,)], id="window"),
        pytest.param(
            "SELECT city FROM orders GROUP BY city ORDER BY count(*) DESC, city LIMIT 2",
            [("Bern",), ("Oslo",)],
            id="ordered-groups",
        ),
        pytest.param("SELECT count(*) FROM orders WHERE amount < 1.5e0", [(1,)], id="decimals-beside-doubles"),
    ],
)
def test_query_is_answered_in_the_engines_own_sql_query_7(
    tables: tuple[QueryTable, ...], tmp_path: Path, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert ask(tmp_path, tables, sql) == rows


def test_columns_of_one_name_are_told_apart_query_5(tables: tuple[QueryTable, ...], tmp_path: Path) -> None:
    sql = "SELECT a.city, b.city FROM orders a JOIN my.cities b ON a.city = b.city ORDER BY 1 LIMIT 1"
    ask(tmp_path, tables, sql)
    assert pq.read_schema(tmp_path / "result.parquet").names == ["city", "city_2"]


@pytest.mark.parametrize(
    ("sql", "reported"),
    [
        pytest.param("SELECT citty FROM orders", "there is no column citty; did you mean city?", id="column"),
        pytest.param("SELECT City FROM orders", "there is no column City; did you mean city?", id="case"),
        pytest.param(
            "SELECT qqqq FROM orders",
            "there is no column qqqq; the columns are: amount, city, offset, op, share, system_time",
            id="columns",
        ),
        pytest.param('SELECT "Bern"', "there is no column Bern; a text stands in single quotes", id="text"),
        pytest.param(
            "SELECT * FROM my.citis", "there is no dataset or table my.citis; did you mean my.cities?", id="table"
        ),
        pytest.param(
            "SELECT * FROM Orders", "there is no dataset or table Orders; did you mean orders?", id="table-case"
        ),
        pytest.param(
            "SELECT * FROM qqqqqqq",
            "there is no dataset or table qqqqqqq; known are: my.cities, net.flows, orders",
            id="tables",
        ),
        pytest.param(
            "SELECT collect_list(city) FROM orders",
            "DataFusion's SQL has no function collect_list; did you mean make_list? "
            "Spark's functions are in Spark's SQL (--engine spark)",
            id="function-of-spark",
        ),
        pytest.param("SELEC 1", "Expected: an SQL statement, found: SELEC", id="syntax"),
        pytest.param("SELECT 1 / 0", "Divide by zero error", id="value"),
        pytest.param("DROP TABLE orders", "DDL not supported: DropTable", id="no-query"),
        pytest.param("EXPLAIN SELECT 1", "expected one query, found EXPLAIN", id="explain"),
        pytest.param(
            "SHOW TABLES",
            "only queries are answered, and SHOW is none: 'odf-node list' lists the datasets, and .tables in the shell "
            "their columns",
            id="show",
        ),
        pytest.param(
            "DESCRIBE orders",
            "only queries are answered, and DESCRIBE is none: 'odf-node inspect schema NAME' shows the columns, as "
            ".schema NAME does in the shell",
            id="describe",
        ),
        pytest.param(
            "SELECT op, offset FROM orders",
            'Expected: end of statement, found: orders; the column stands in double quotes there: "offset"',
            id="offset",
        ),
    ],
)
def test_mistake_is_told_in_a_line_with_what_was_meant_query_15(
    tables: tuple[QueryTable, ...], tmp_path: Path, sql: str, reported: str
) -> None:
    with pytest.raises(InvalidQueryError) as found:
        ask(tmp_path, tables, sql)
    assert found.value.message == reported


def test_error_of_a_long_name_or_a_deep_type_is_the_querys_and_short_query_15(
    tables: tuple[QueryTable, ...], tmp_path: Path
) -> None:
    for sql in ("SELECT " + "x" * 60_000, f"SELECT CAST(NULL AS {'ARRAY<' * 90}INT{'>' * 90}) AS a"):
        with pytest.raises(InvalidQueryError) as found:
            ask(tmp_path, tables, sql)
        assert len(found.value.message) < 700


def test_error_of_syntax_has_its_place_query_15(tables: tuple[QueryTable, ...], tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError) as found:
        ask(tmp_path, tables, "SELECT 1\nFROM FROM x y z")
    assert found.value.position == "line 2, column 13"
