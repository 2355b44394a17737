"""Queries that are made to break a parser, an analyser or the gate's own walk: each is the query's fault (GATE-15).

What a stranger declares is graded, re-executed and asked in an engine of ours. None of these texts may look like an
engine that is broken, hold it for the whole time limit, or leave it unfit for the next request.
"""

import pytest

from odf_engines.contract import GradeLevel, QueryRequest, QueryTable
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, transform_request, transform_sql

pytestmark = pytest.mark.spark

TABLE = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)

# Beyond the bounds of the text: said before an engine reads them.
BEYOND = {
    "minus-signs": "SELECT event_time, " + "- " * 90_000 + "id AS x FROM orders",
    "cases": "SELECT event_time, " + "CASE WHEN true THEN " * 5_000 + "1" + " END" * 5_000 + " AS x FROM orders",
    "brackets": "SELECT event_time, " + "(" * 20_000 + "id" + ")" * 20_000 + " AS x FROM orders",
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 500 + "orders" + ")" * 500,
    "functions": "SELECT event_time, " + "abs(" * 500 + "id" + ")" * 500 + " AS x FROM orders",
    "comments": "SELECT event_time " + "/*" * 500 + "*/" * 500 + " FROM orders",
}

# Within them, and deeper than a parser's, analyser's or optimiser's stack all the same.
DEEP = {
    "texts": "SELECT event_time, status" + " || 'a'" * 3_000 + " AS x FROM orders",
    "sums": "SELECT event_time, id" + " + 1" * 4_000 + " AS x FROM orders",
    "casts": "SELECT event_time, id" + "::int" * 3_000 + " AS x FROM orders",
    "minus-signs": "SELECT event_time, " + "- " * 9_000 + "id AS x FROM orders",
    **{
        f"types-{depth}": "SELECT event_time, CAST(NULL AS "
        + "ARRAY<" * depth
        + "INT"
        + ">" * depth
        + ") AS x FROM orders"
        for depth in (70, 500, 1_000)  # beyond what a schema, the gate and the parser take
    },
    "pipes": "FROM orders" + " |> WHERE true" * 1_500,
    "tables": "WITH t0 AS (SELECT event_time FROM orders)"
    + "".join(f", t{n + 1} AS (SELECT * FROM t{n})" for n in range(300))
    + " SELECT * FROM t300",
}


@pytest.mark.parametrize("query", BEYOND.values(), ids=BEYOND)
def test_query_beyond_the_bounds_is_invalid_wherever_it_is_given(spark_session, query):
    stated = "expected at most"
    with pytest.raises(InvalidQueryError, match=stated):
        spark_session.transform(transform_request(query))
    with pytest.raises(InvalidQueryError, match=stated):
        spark_session.query(QueryRequest(tables=(TABLE,), sql=query))
    with pytest.raises(InvalidQueryError, match=stated):
        spark_session.check(transform_sql(query), [TABLE])


@pytest.mark.parametrize("query", DEEP.values(), ids=DEEP)
def test_query_deeper_than_the_engines_stack_is_the_querys_fault(spark_session, query):
    with pytest.raises((InvalidQueryError, NotReproducibleError)):
        spark_session.transform(transform_request(query))
    good = spark_session.check(transform_sql("SELECT event_time, id FROM orders"), [TABLE])
    assert good.level is GradeLevel.REPRODUCIBLE
