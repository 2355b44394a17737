"""Questions of Spark's that swell when they are written for DataFusion, which the node does outside of any sandbox.

Source: clause QUERY-14 in ``spec/query.md``.
"""

import subprocess
import sys
import tracemalloc

import pytest

from odf_engines.datafusion.spark_questions.translation import translate_question
from odf_engines.errors import UnsuitableQueryError
from odf_engines.host.query_bounds import check_query_bounds


def doubled(step: str, count: int) -> str:
    """A question of few words in which each named query stands twice in the next one."""
    named = ", ".join(f"t{number} AS ({step.format(f't{number - 1}')})" for number in range(1, count))
    return f"WITH t0 AS (SELECT 1 AS a), {named} SELECT * FROM t{count - 1}"


SWELLING = {
    "joins": doubled("SELECT x.a FROM {0} AS x CROSS JOIN {0} AS y", 60),
    "unions": doubled("SELECT a FROM {0} UNION ALL SELECT a FROM {0}", 60),
    "columns": doubled("SELECT * FROM {0} AS x CROSS JOIN {0} AS y", 40),
    "subqueries": doubled("SELECT a FROM (SELECT a FROM {0}) UNION ALL SELECT a FROM (SELECT a FROM {0})", 40),
    "wide": f"WITH t AS (SELECT {', '.join(f'{number} AS c{number}' for number in range(1000))}) "
    f"SELECT x0.c0 FROM t AS x0{''.join(f' CROSS JOIN t AS x{number}' for number in range(1, 700))}",
}


@pytest.mark.parametrize("name", SWELLING)
def test_question_that_swells_is_left_to_spark_query_14(name: str) -> None:
    check_query_bounds(SWELLING[name])
    tracemalloc.start()
    try:
        with pytest.raises(UnsuitableQueryError, match="as long as it is when its named queries are written out"):
            translate_question(SWELLING[name], ())
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 100_000_000


def test_named_query_that_is_used_often_is_translated_query_14() -> None:
    found = translate_question(doubled("SELECT x.a FROM {0} AS x CROSS JOIN {0} AS y", 8), ())
    assert found.count("SELECT") > 128


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1{' + 1' * 4900}",
        f"SELECT true{' AND true' * 4900}",
        f"SELECT 1{' UNION SELECT 1' * 3000}",
        f"SELECT 1{'::int' * 3000}",
        f"SELECT {'NOT ' * 9000}true",
        f"SELECT 'a'{' IS NOT NULL' * 2500}",
    ],
    ids=["sum", "condition", "union", "casts", "not", "tests"],
)
def test_question_of_many_parts_inside_each_other_is_left_to_spark_query_14(sql: str) -> None:
    check_query_bounds(sql)
    with pytest.raises(UnsuitableQueryError):
        translate_question(sql, ())


TELL = """
import sys
from odf_engines.dialects.queries import translate_query
from odf_engines.datafusion.spark_questions.translation import translate_question
from odf_protocol.errors import OdfError
from odf_engines.errors import EngineError

for read in (lambda: translate_question(sys.argv[1], ()), lambda: translate_query(sys.argv[1], "flink", where="q")):
    try:
        read()
    except (OdfError, EngineError):
        pass
"""


@pytest.mark.parametrize(
    "sql", ["SHOW \x1b[2J", 'EXPLAIN SELECT 1\n{"event": "push", "outcome": "accepted"}', "SET a=b"]
)
def test_text_of_a_question_is_not_written_among_the_lines_of_the_daemon(sql: str) -> None:
    done = subprocess.run([sys.executable, "-c", TELL, sql], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("", "")
