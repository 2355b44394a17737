"""Clauses GATE-1 to GATE-9: what the gate rejects, and what it says."""

import pytest

from odf_engines.contract import GradeLevel, QueryTable, TransformClass
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.events import SqlQueryStep, TemporalTable, TransformSql
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, transform_request, transform_sql, write_orders

pytestmark = pytest.mark.spark

FORBIDDEN = {
    "view-over-a-file": "CREATE TEMP VIEW v USING text OPTIONS (path '/etc/passwd')",
    "view-over-a-database": "CREATE TEMP VIEW v USING jdbc OPTIONS (url 'jdbc:derby:memory:x', dbtable 't')",
    "table": "CREATE TABLE t AS SELECT 1 AS a",
    "drop": "DROP VIEW orders",
    "insert": "INSERT INTO orders SELECT * FROM orders",
    "insert-into-a-folder": "INSERT OVERWRITE DIRECTORY '/exchange/out/x' USING parquet SELECT * FROM orders",
    "merge": "MERGE INTO orders USING orders o ON false WHEN NOT MATCHED THEN INSERT *",
    "update": "UPDATE orders SET id = 1",
    "delete": "DELETE FROM orders",
    "add-file": "ADD FILE '/etc/passwd'",
    "add-jar": "ADD JAR '/tmp/x.jar'",
    "java-function": "CREATE TEMPORARY FUNCTION f AS 'java.lang.Runtime'",
    "sql-function": "CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1",
    "set": "SET spark.sql.ansi.enabled = false",
    "set-time-zone": "SET TIME ZONE 'Asia/Tokyo'",
    "reset": "RESET",
    "declare-variable": "DECLARE VARIABLE v INT DEFAULT 1",
    "set-variable": "SET VARIABLE v = 1",
    "execute-immediate": "EXECUTE IMMEDIATE 'SELECT 1'",
    "script": "BEGIN SELECT event_time FROM orders; END",
    "script-with-a-loop": "BEGIN WHILE true DO SELECT 1; END WHILE; END",
    "two-statements": "SELECT event_time FROM orders; SELECT event_time FROM orders",
    "show": "SHOW TABLES",
    "describe": "DESCRIBE orders",
    "explain": "EXPLAIN SELECT event_time FROM orders",
    "use": "USE default",
    "cache": "CACHE TABLE orders",
    "refresh": "REFRESH TABLE orders",
    "multi-insert": "FROM orders INSERT INTO a SELECT id INSERT INTO b SELECT id",
    "program": "SELECT TRANSFORM(id) USING '/bin/cat' AS (id) FROM orders",
    "file-as-relation": "SELECT event_time FROM parquet.`/exchange/in/1/0.parquet`",
    "text-file-as-relation": "SELECT value FROM text.`/etc/passwd`",
    "qualified-relation": "SELECT event_time FROM spark_catalog.default.orders",
    "undeclared-relation": "SELECT event_time FROM customers",
    "information-schema": "SELECT * FROM system.information_schema.tables",
    "hint": "SELECT /*+ REPARTITION(7) */ event_time, id FROM orders",
    "reflection": "SELECT event_time, java_method('java.lang.System', 'getenv') AS x FROM orders",
    "reflection-by-another-name": "SELECT event_time, reflect('java.util.UUID', 'randomUUID') AS x FROM orders",
    "quiet-reflection": "SELECT event_time, try_reflect('java.util.UUID', 'randomUUID') AS x FROM orders",
    "qualified-function": "SELECT event_time, system.builtin.upper(status) AS x FROM orders",
    "unknown-function": "SELECT event_time, frobnicate(id) AS x FROM orders",
    "name-from-text": "SELECT event_time FROM IDENTIFIER('ord' || 'ers')",
    "function-name-from-text": "SELECT event_time, IDENTIFIER('ra' || 'nd')() AS x FROM orders",
    "literal-that-reads-the-clock": "SELECT event_time, TIMESTAMP 'now' AS x FROM orders",
    "literal-of-today": "SELECT event_time FROM orders WHERE CAST(event_time AS DATE) < DATE/**/'today'",
    "literal-without-a-date": "SELECT event_time, TIMESTAMP '12:30' AS x FROM orders",
    "escaped-literal": r"SELECT event_time, TIMESTAMP '\U0000006eow' AS x FROM orders",
    "output-without-event-time": "SELECT id FROM orders",
    "output-with-event-time-of-another-type": "SELECT id AS event_time FROM orders",
    "output-with-offset": "SELECT * FROM orders",
    "output-with-renamed-offset": "SELECT event_time, id AS offset FROM orders",
    "output-with-system-time": "SELECT event_time, system_time FROM orders",
    "output-with-one-name-twice": "SELECT event_time, id, status AS id FROM orders",
    "output-of-no-type": "SELECT event_time, NULL AS x FROM orders",
    "output-of-intervals": "SELECT event_time, event_time - event_time AS x FROM orders",
    "syntax": "SELEC event_time FROM orders",
    "unknown-column": "SELECT event_time, nope FROM orders",
    "nothing": "",
}

NOT_REPRODUCIBLE = {
    "clock": ("SELECT event_time, current_timestamp() AS x FROM orders", "current_timestamp()", "clock"),
    "clock-without-brackets": ("SELECT event_time, current_timestamp AS x FROM orders", "current_timestamp", "clock"),
    "now": ("SELECT event_time FROM orders WHERE event_time < now()", "now()", "clock"),
    "today": ("SELECT event_time, current_date AS x FROM orders", "current_date", "clock"),
    "clock-deep-inside": ("SELECT event_time, array(struct(now())) AS x FROM orders", "now()", "clock"),
    "unix-time": ("SELECT event_time, unix_timestamp() AS x FROM orders", "current_timestamp", "clock"),
    "cast-of-now": ("SELECT event_time, CAST('now' AS TIMESTAMP) AS x FROM orders", "CAST", "moment"),
    "cast-of-built-now": ("SELECT event_time, CAST(concat('n', 'ow') AS DATE) AS x FROM orders", "CAST", "moment"),
    "cast-of-text-to-time": ("SELECT event_time, CAST(status AS TIMESTAMP) AS x FROM orders", "CAST", "12:30"),
    "hidden-cast-of-text-to-time": ("SELECT event_time FROM orders WHERE event_time < status", "CAST", "12:30"),
    "cast-inside-a-function": ("SELECT event_time, to_timestamp(status) AS x FROM orders", "CAST", "12:30"),
    "cast-inside-truncation": ("SELECT event_time, date_trunc('DAY', status) AS x FROM orders", "CAST", "12:30"),
    "time-in-json": ("SELECT event_time, from_json(status, 'a TIMESTAMP').a AS x FROM orders", "from_json", "12:30"),
    "random": ("SELECT event_time, rand() AS x FROM orders", "rand()", "another value"),
    "random-with-a-seed": ("SELECT event_time, rand(7) AS x FROM orders", "rand(7)", "another value"),
    "random-filter": ("SELECT event_time FROM orders WHERE rand() < 0.5", "rand()", "another value"),
    "uuid": ("SELECT event_time, uuid() AS x FROM orders", "uuid", "another value"),
    "shuffle": ("SELECT event_time, shuffle(array(1, 2)) AS x FROM orders", "shuffle", "another value"),
    "file-name": ("SELECT event_time, input_file_name() AS x FROM orders", "input_file_name()", "cut the rows"),
    "row-number": ("SELECT event_time, monotonically_increasing_id() AS x FROM orders", "increasing", "cut the rows"),
    "partition": ("SELECT event_time, spark_partition_id() AS x FROM orders", "SPARK_PARTITION_ID()", "cut the rows"),
    "user": ("SELECT event_time, current_user() AS x FROM orders", "current_user()", "who runs"),
    "zone": ("SELECT event_time, current_timezone() AS x FROM orders", "current_timezone()", "who runs"),
    "version": ("SELECT event_time, version() AS x FROM orders", "version()", "who runs"),
    "sample": ("SELECT event_time FROM orders TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "other rows"),
    "filter-on-operation": ("SELECT event_time, id FROM orders WHERE op = 0", "op", "describes the change"),
    "expression-over-operation": ("SELECT event_time, op + 1 AS x FROM orders", "op", "describes the change"),
    "renamed-operation": ("SELECT event_time, op AS kind FROM orders", "op", "describes the change"),
    "operation-of-the-querys-own": ("SELECT event_time, CAST(0 AS INT) AS op FROM orders", "op", "input's own"),
    "filter-on-offset": ("SELECT event_time FROM orders WHERE offset < 3", "offset", "describes the change"),
    "renamed-offset": ("SELECT event_time, offset AS n FROM orders", "offset", "describes the change"),
    "filter-on-system-time": ("SELECT event_time FROM orders WHERE system_time > event_time", "system_time", "change"),
    "operation-through-a-table": (
        "WITH t AS (SELECT * FROM orders) SELECT event_time, op * 1 AS x FROM t", "op", "describes the change",
    ),
}  # fmt: skip

VIEWS = {
    "aggregate": "SELECT max(event_time) AS event_time FROM orders",
    "group-by": "SELECT event_time, count(*) AS n FROM orders GROUP BY 1",
    "window": "SELECT event_time, row_number() OVER (ORDER BY id) AS n FROM orders",
    "join": "SELECT a.event_time FROM orders a JOIN orders b ON a.id = b.id",
    "sort": "SELECT event_time FROM orders ORDER BY id",
    "limit": "SELECT event_time FROM orders LIMIT 3",
    "offset": "SELECT event_time FROM orders OFFSET 3",
    "distinct": "SELECT DISTINCT event_time FROM orders",
    "union": "SELECT event_time FROM orders UNION ALL SELECT event_time FROM orders",
    "except": "SELECT event_time FROM orders EXCEPT SELECT event_time FROM orders",
    "generator": "SELECT event_time, explode(array(1, 2)) AS x FROM orders",
    "lateral-view": "SELECT event_time, x FROM orders LATERAL VIEW explode(array(1)) AS x",
    "pivot": "SELECT * FROM (SELECT event_time, status, amount FROM orders) PIVOT (sum(amount) FOR status IN ('new'))",
    "constant": "SELECT TIMESTAMP '2020-01-01 00:00:00' AS event_time",
    "values": "SELECT * FROM VALUES (TIMESTAMP '2020-01-01 00:00:00') AS t (event_time)",
    "scalar-subquery": "SELECT event_time, (SELECT max(id) FROM orders) AS m FROM orders",
    "exists": "SELECT event_time FROM orders o WHERE EXISTS (SELECT 1 FROM orders)",
    "in-subquery": "SELECT event_time FROM orders WHERE id IN (SELECT id FROM orders)",
}

ALLOWED = {
    "everything-but-the-log": "SELECT * EXCEPT (offset, system_time) FROM orders",
    "pipes": "FROM orders |> WHERE id > 1 |> EXTEND id * 2 AS twice |> SELECT event_time, twice",
    "compared-with-days": "SELECT event_time FROM orders WHERE event_time > '2020-01-01' OR event_time < DATE '2021-01-01'",  # noqa: E501
    "between": "SELECT event_time FROM orders WHERE id BETWEEN 1 AND 2 AND status IN ('a', 'b')",
    "text-to-day": "SELECT CAST(status AS DATE) AS event_time FROM orders",
    "text-to-time-by-format": "SELECT to_timestamp(status, 'yyyy-MM-dd HH:mm') AS event_time FROM orders",
    "lambda": "SELECT event_time, transform(array(id, 1), x -> x + 1) AS x FROM orders",
    "words-in-text": "SELECT event_time, 'now rand() CREATE TABLE' AS x FROM orders -- SET x = 1",
    "unused-columns-of-the-log": "WITH t AS (SELECT * FROM orders) SELECT event_time, op, id FROM t",
    "case-of-keywords": "select EVENT_TIME.event_time from orders as EVENT_TIME",
    "raise": "SELECT event_time, assert_true(id > 0) IS NULL AS x FROM orders",
}


def check(session, *queries):
    return session.check(transform_sql(*queries), [QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)])


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in FORBIDDEN.items()])
def test_what_is_no_allowed_query_is_invalid(spark_session, query):
    with pytest.raises(InvalidQueryError):
        spark_session.transform(transform_request(query))


@pytest.mark.parametrize(
    ("query", "expression", "reason"), [pytest.param(*each, id=name) for name, each in NOT_REPRODUCIBLE.items()]
)
def test_what_cannot_be_reexecuted_is_rejected_with_expression_reason_and_rewrite(
    spark_session, query, expression, reason
):
    with pytest.raises(NotReproducibleError) as caught:
        spark_session.transform(transform_request(query))
    assert expression in caught.value.expression
    assert reason in caught.value.reason
    assert caught.value.rewrite


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in ALLOWED.items()])
def test_maps_pass(spark_session, query):
    grade = check(spark_session, query)
    assert grade.level is not GradeLevel.REJECTED, grade.findings
    assert grade.transform_class is TransformClass.MAP


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in VIEWS.items()])
def test_what_is_no_map_is_a_maintained_view(spark_session, query):
    grade = check(spark_session, query)
    assert grade.level is not GradeLevel.REJECTED, grade.findings
    assert grade.transform_class is TransformClass.MAINTAINED
    assert grade.schema.names[3] == "event_time"


def test_rejected_statements_have_no_effect_on_later_requests(spark_session, tmp_path):
    path = write_orders(tmp_path / "0.parquet", [(0, 0, 0, 1, "new", None)])
    for query in ("SET TIME ZONE 'Asia/Tokyo'", "CREATE TEMP VIEW customers AS SELECT 1 AS a"):
        with pytest.raises(InvalidQueryError):
            spark_session.transform(transform_request(query))
    response = spark_session.transform(
        transform_request("SELECT event_time, hour(event_time) AS h FROM orders", orders_input([path], (0, 0)))
    )
    assert response.statistics.rows_out == 1
    with pytest.raises(InvalidQueryError, match="customers"):
        spark_session.transform(transform_request("SELECT a FROM customers"))


def test_complaint_names_the_place_in_the_query(spark_session):
    with pytest.raises(InvalidQueryError) as caught:
        spark_session.transform(transform_request("SELECT event_time, nope FROM orders"))
    assert caught.value.position == "1:19"
    assert "nope" in caught.value.message


def test_views_of_one_request_are_unknown_to_the_next(spark_session):
    steps = transform_sql(("step", "SELECT * FROM orders"), "SELECT event_time FROM step")
    spark_session.transform(transform_request(steps))
    with pytest.raises(InvalidQueryError, match="unknown relation step"):
        spark_session.transform(transform_request("SELECT event_time FROM step"))


@pytest.mark.parametrize(
    "transform",
    [
        pytest.param(TransformSql(engine="spark"), id="none"),
        pytest.param(transform_sql("SELECT 1", "SELECT event_time FROM orders"), id="unnamed-step"),
        pytest.param(transform_sql(("orders", "SELECT * FROM orders"), "SELECT 1"), id="step-named-as-an-input"),
    ],
)
def test_steps_that_do_not_fit_together_are_invalid(spark_session, transform):
    with pytest.raises(InvalidQueryError):
        spark_session.transform(transform_request(transform))


def test_temporal_table_without_a_time_is_rejected_with_what_would_pass(spark_session):
    transform = TransformSql(
        engine="spark",
        queries=(SqlQueryStep(query="SELECT event_time FROM orders"),),
        temporal_tables=(TemporalTable(name="orders", primary_key=("id",)),),
    )
    with pytest.raises(NotReproducibleError, match=r"nothing says which time is meant; instead: .* AS OF"):
        spark_session.transform(transform_request(transform))
