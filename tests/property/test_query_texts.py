"""Clause GATE-15: whatever stands in a query, it gives a result or is rejected; no text breaks the engine."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odf_engines.contract import Grade, QueryRequest, QueryTable
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.functions import FUNCTIONS
from support.transforms import ORDERS, transform_request, transform_sql

pytestmark = pytest.mark.spark

TABLE = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)

COLUMNS = ["event_time", "id", "status", "amount", "op", "offset", "system_time", "x", "t.id", "`id`", "orders.id"]
LITERALS = [
    "1", "-1", "0.5", "1.5D", "1e400", "99999999999999999999", "'a'", "''", "'1'", "NULL", "true", "X'41'", "'[('",
    "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'", "INTERVAL 1 DAY", "INTERVAL '1-2' YEAR TO MONTH",
    "DATE 'now'", "r'\\'", "''''", "1L", "1Y", "1BD", "array()", "map()", "struct()", "INTERVAL '1' DAY",
]  # fmt: skip
TYPES = [
    "INT", "STRING", "DOUBLE", "DATE", "TIMESTAMP", "BINARY", "DECIMAL(38,38)", "ARRAY<INT>", "MAP<INT,STRING>",
    "STRUCT<a: INT>", "VOID", "VARIANT", "INTERVAL DAY", "CHAR(3)", "STRING COLLATE UNICODE", "TIMESTAMP_NTZ", "TIME",
]  # fmt: skip
BINARY = [
    "+", "-", "*", "/", "%", "div", "||", "=", "<=>", "<", "<>", "AND", "OR", "LIKE", "RLIKE", "ILIKE",
    "IS DISTINCT FROM", "&", "^", "|", "<<", "::", ".", "COLLATE", "IN", "BETWEEN 1 AND",
]  # fmt: skip
NAMES = ["a", "b", "orders", "`x y`", "t", "ORDERS", "select", "`a.b`"]

JOINS = ["", "LEFT", "FULL", "CROSS", "NATURAL"]
CLAUSES = ["WHERE", "ORDER BY", "LIMIT", "GROUP BY", "HAVING", "OFFSET", "SORT BY", "CLUSTER BY"]

words = st.sampled_from


def _bigger_expression(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.lists(inner, max_size=3).map(", ".join)
    queries = inner.map(lambda each: f"SELECT {each} FROM orders")
    return st.one_of(
        st.builds("({} {} {})".format, inner, words(BINARY), inner),
        st.builds("{}({})".format, words(sorted(FUNCTIONS)), some),
        st.builds("CAST({} AS {})".format, inner, words(TYPES)),
        st.builds("try_cast({} AS {})".format, inner, words(TYPES)),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, inner, inner, inner),
        st.builds("{}({}) OVER (PARTITION BY {} ORDER BY {})".format, words(sorted(FUNCTIONS)), inner, inner, inner),
        st.builds("{}({}) FILTER (WHERE {})".format, words(sorted(FUNCTIONS)), inner, inner),
        st.builds("transform(array({}), x -> {})".format, inner, inner),
        st.builds("({})".format, queries),
        st.builds("EXISTS ({})".format, queries),
        st.builds("{} IN ({})".format, inner, queries),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("({}).a".format, inner),
        st.builds("NOT {}".format, inner),
        st.builds("- {}".format, inner),
        st.builds("EXTRACT(HOUR FROM {})".format, inner),
    )


EXPRESSIONS = st.recursive(st.one_of(words(COLUMNS), words(LITERALS)), _bigger_expression, max_leaves=6)
LISTS = st.lists(
    st.one_of(EXPRESSIONS, EXPRESSIONS.map("{} AS x".format), st.just("*"), st.just("* EXCEPT (offset, system_time)")),
    min_size=1,
    max_size=3,
).map(lambda each: ", ".join(["event_time", *each]))


def _bigger_query(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    name = words(NAMES)
    return st.one_of(
        st.builds("SELECT {} FROM ({}) AS {}".format, LISTS, inner, name),
        st.builds("WITH {0} AS ({1}) SELECT {2} FROM {0}".format, name, inner, LISTS),
        st.builds("WITH {} AS ({}), {} AS (SELECT * FROM {}) SELECT * FROM {}".format, name, inner, name, name, name),
        st.builds("WITH {} (a, b) AS ({}) SELECT * FROM {}".format, name, inner, name),
        st.builds("{} {} {}".format, inner, words(["UNION ALL", "EXCEPT", "INTERSECT", "UNION", "MINUS"]), inner),
        st.builds("SELECT {} FROM ({}) {} JOIN ({}) ON {}".format, LISTS, inner, words(JOINS), inner, EXPRESSIONS),
        st.builds("{} {} {}".format, inner, words(CLAUSES), EXPRESSIONS),
        st.builds("SELECT * FROM ({}) {}".format, inner, words([
            "LATERAL VIEW explode(array(1, 2)) AS y", "TABLESAMPLE (10 PERCENT)", "PIVOT (sum(id) FOR status IN ('a'))",
            "UNPIVOT (v FOR n IN (id))", "|> WHERE true |> SELECT event_time", ", LATERAL (SELECT 1)", "WINDOW w AS ()",
        ])),
    )  # fmt: skip


QUERIES = st.recursive(LISTS.map("SELECT {} FROM orders".format), _bigger_query, max_leaves=3)
CHUNKS = [
    "SELECT", "FROM", "orders", "event_time", "(", ")", ",", "*", "'", '"', "`", "/*", "*/", "/*+", "--", "\n", "\\",
    ";", "$$", "${x}", "?", ":p", "[", "]", "{", "}", "<", ">", "->", "=>", "::", "|>", "@", "#", "\0", "é", "CASE",
    "END", "WITH", "AS", "a", "1", "VALUES", "LATERAL", "IDENTIFIER", "OVER", "BEGIN", "SET", "\ud800",
    "\U0001f600", "INTERVAL",
]  # fmt: skip
SOUP = st.lists(words(CHUNKS), max_size=25).map(" ".join)


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(QUERIES, QUERIES, SOUP))
@example(text="SELECT event_time, -- \0\nid FROM orders")
@example(text="SELECT event_time, id FROM orders " + "\u2028" * 50)
def test_query_gives_a_result_or_is_rejected(spark_session, text):
    _derive(spark_session, transform_sql(text))
    with suppress(InvalidQueryError):
        spark_session.query(QueryRequest(tables=(TABLE,), sql=text, max_rows=5))


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(
    texts=st.lists(QUERIES | st.builds("SELECT {} FROM {}".format, LISTS, words(NAMES)), min_size=2, max_size=3),
    names=st.lists(words(NAMES), min_size=3, max_size=3),
)
def test_steps_give_a_result_or_are_rejected(spark_session, texts, names):
    _derive(spark_session, transform_sql(*zip(names, texts[:-1], strict=False), texts[-1]))


def _derive(session, transform):
    with suppress(InvalidQueryError, NotReproducibleError):
        assert isinstance(session.check(transform, [TABLE]), Grade)
        session.transform(transform_request(transform))
