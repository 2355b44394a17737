"""Clause QUERY-8: what is translated of Spark's questions, and what is left alone as it might mean something else."""

import pytest

from odf_engines.contract import QueryTable
from odf_engines.datafusion.spark_questions.translation import translate_question
from odf_engines.errors import UnsuitableQueryError
from support.question_makers import make_tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[QueryTable, ...]:
    return make_tables(tmp_path_factory.mktemp("tables"))


LEFT_ALONE = {
    "float-sum": ("SELECT sum(ratio) AS s FROM my.things", "bits of one order of rows"),
    "float-mean": ("SELECT avg(ratio) AS s FROM my.things", "bits of one order of rows"),
    "float-state": ("SELECT word FROM my.things__state", "floating-point"),
    "float-group": ("SELECT ratio FROM my.things GROUP BY ratio", "floating-point"),
    "window": ("SELECT rank() OVER (ORDER BY whole) AS r FROM my.things", "WINDOW"),
    "function": ("SELECT lower(word) AS w FROM my.things", "LOWER"),
    "clock": ("SELECT current_timestamp() AS t", "CURRENTTIMESTAMP"),
    "other-case": ("SELECT WORD FROM my.things", "no columns called WORD"),
    "two-columns": ("SELECT word FROM my.things JOIN other ON true", "2 columns called word"),
    "no-table": ("SELECT a FROM nowhere", "no table called nowhere"),
    "escapes": (r"SELECT 'a\'b' AS t", "the sign \\"),
    "quote-twice": ("SELECT 'it''s' AS t", "CONCAT"),
    "hint": ("SELECT /*+ BROADCAST(other) */ word FROM other", "the sign /*"),
    "pipe": ("FROM other |> SELECT word", "the sign |>"),
    # Spark reads this as (small = whole) IN (1), the parser as small = (whole IN (1)).
    "what-binds-closer": ("SELECT small = whole IN (1) AS b FROM my.things", "comparison of conditions"),
    # Spark reads this as (small = whole) IS DISTINCT FROM 1.
    "what-binds-closer-of-nulls": ("SELECT small = whole IS DISTINCT FROM 1 AS b FROM my.things", "comparison of cond"),
    "spark-fails": ("SELECT word FROM other GROUP BY 1 HAVING count(*) > 1 ORDER BY max(day)", "HAVING and ORDER BY"),
    # A comma binds less than a join.
    "comma": ("SELECT a.word FROM other a, other b LEFT JOIN other c ON a.whole = c.whole", "join after a cross join"),
    "some-rows": ("SELECT word, count(*) FROM other GROUP BY word LIMIT 2", "LIMIT without ORDER BY"),
    "inner-rows": ("SELECT word FROM (SELECT word FROM other ORDER BY word LIMIT 2)", "inside of a query"),
    "inner-query": ("SELECT word FROM other WHERE whole IN (SELECT whole FROM my.things)", "IN with"),
    "sample": ("SELECT word FROM other TABLESAMPLE (10 PERCENT)", "TABLE with sample"),
    "unnamed": ("SELECT CASE WHEN flag THEN 1 END FROM other", "a column without a name"),
    "text-and-number": ("SELECT word FROM other WHERE word > 1", "string compared with int"),
    "bad-day": ("SELECT word FROM other WHERE day > '2024-2-1'", "a text compared with date"),
    "unused": ("WITH x AS (SELECT 1 AS a) SELECT word FROM other", "WITH x, which is not used"),
    "order-by-alias": ("SELECT -1 AS whole FROM other ORDER BY whole + 1", "over names of the result"),
    "decimals": ("SELECT price * price AS p FROM other", "decimal(10,2) * decimal"),
    "statements": ("SELECT 1 AS a; SELECT 2 AS a", "several statements"),
    "no-question": ("DROP TABLE other", "DROP"),
    "no-sql": ("SELEC 1", "a form that the parser does not know"),
    "deep": ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "a form that the parser does not know"),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_question_that_may_mean_something_else_is_left_alone_query_8(tables: tuple[QueryTable, ...], name: str) -> None:
    sql, reason = LEFT_ALONE[name]
    with pytest.raises(UnsuitableQueryError) as found:
        translate_question(sql, tables)
    assert reason in found.value.reason


def test_rows_of_one_table_keep_their_order_and_others_get_one_query_8(tables: tuple[QueryTable, ...]) -> None:
    assert translate_question("SELECT word FROM other WHERE whole > 1 LIMIT 3", tables).endswith(
        "AS q ORDER BY q.place LIMIT 3"
    )
    assert "NULLS FIRST" in translate_question("SELECT word FROM other__state", tables)


def test_names_are_those_of_spark_query_8(tables: tuple[QueryTable, ...]) -> None:
    sql = translate_question('SELECT count(*), MAX(whole), "x", 1 AS x FROM other', tables)
    for name in ('"count(1)"', '"max(whole)"', '"x"', '"x_2"'):
        assert f" AS {name}" in sql
