"""Clause ENGINE-7: how far a query can be repeated, judged on its analysed plan. The catalogue was measured.

Every query is graded, also those that cannot be run as transforms; then the grade has an obstacle beside it.
"""

import pytest

from odf_engines.contract import GradeLevel, QueryTable
from odf_protocol.events import DataField, DataSchema, DataTypeDate, DataTypeOption
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, transform_sql

pytestmark = pytest.mark.spark

MORE = DataSchema(fields=(*ORDERS.fields, DataField(name="day", type=DataTypeOption(inner=DataTypeDate()))))


def aggregate(expression: str) -> str:
    return f"SELECT event_time, {expression} AS x FROM orders GROUP BY event_time"


def window(expression: str) -> str:
    return f"SELECT event_time, {expression} AS x FROM orders"


# Query, what pins it as it is shown, and the rewrite; each gave several results under six settings, or would have.
PINNED = {
    "sum-of-floats": (aggregate("sum(amount)"), "sum", "DECIMAL"),
    "try-sum-of-floats": (aggregate("try_sum(amount)"), "sum", "DECIMAL"),
    "average": (aggregate("avg(amount)"), "avg", "DECIMAL"),
    "average-of-whole-numbers": (aggregate("mean(id)"), "mean", "DECIMAL"),
    "deviation": (aggregate("stddev(amount)"), "stddev", "DECIMAL"),
    "variance-of-whole-numbers": (aggregate("var_pop(id)"), "var_pop", "DECIMAL"),
    "correlation": (aggregate("corr(amount, id)"), "corr", "DECIMAL"),
    "covariance": (aggregate("covar_samp(amount, id)"), "covar_samp", "DECIMAL"),
    "regression": (aggregate("regr_slope(amount, id)"), "regr_slope", "DECIMAL"),
    "skewness": (aggregate("skewness(amount)"), "skewness", "DECIMAL"),
    "greatest-float": (aggregate("max(amount)"), "max", "DECIMAL"),
    "approximate-percentile": (aggregate("percentile_approx(amount, 0.5)"), "percentile", "percentile(column"),
    "first": (aggregate("first(status)"), "first", "min_by"),
    "last": (aggregate("last_value(status)"), "last", "max_by"),
    "any-value": (aggregate("any_value(status)"), "any_value", "min(column)"),
    "list": (aggregate("collect_list(id)"), "collect_list", "sort_array"),
    "array": (aggregate("array_agg(id)"), "collect_list", "sort_array"),
    "set": (aggregate("collect_set(status)"), "collect_set", "sort_array"),
    "sorted-list-of-floats": (aggregate("sort_array(collect_list(amount))"), "collect_list", "sort_array"),
    "joined-text": (aggregate("listagg(status, ',')"), "listagg", "array_join"),
    "most-common": (aggregate("mode(status)"), "mode", "struct(n, column)"),
    "value-at-the-greatest": (aggregate("max_by(status, id)"), "max_by", "struct(key, column)"),
    "approximate-count-distinct": (aggregate("approx_count_distinct(status)"), "approx_count", "digest"),
    "histogram": (aggregate("histogram_numeric(amount, 3)"), "histogram", "width_bucket"),
    "limit": ("SELECT event_time FROM orders LIMIT 3", "LIMIT", "ORDER BY"),
    "limit-under-ties": ("SELECT event_time, id FROM orders ORDER BY id LIMIT 3", "LIMIT", "every row unique"),
    "limit-in-a-subquery": (
        "SELECT max(event_time) AS event_time FROM (SELECT event_time FROM orders LIMIT 3)", "LIMIT", "ORDER BY",
    ),
    "limit-in-a-condition": (
        "SELECT event_time FROM orders WHERE id IN (SELECT id FROM orders LIMIT 3)", "LIMIT", "ORDER BY",
    ),
    "limit-in-a-table": (
        "WITH t AS (SELECT event_time AS e FROM orders LIMIT 3) SELECT max(e) AS event_time FROM t",
        "LIMIT",
        "ORDER BY",
    ),
    "offset": ("SELECT event_time FROM orders OFFSET 3", "OFFSET", "ORDER BY"),
    "limit-after-a-join": (
        "SELECT a.event_time FROM orders a JOIN orders b ON a.id = b.id LIMIT 3", "LIMIT", "ORDER BY",
    ),
    "row-number-with-ties": (window("row_number() OVER (PARTITION BY status ORDER BY id)"), "row_number", "rank()"),
    "row-number-without-order": (
        window("row_number() OVER (PARTITION BY status ORDER BY 1)"), "row_number", "every row unique",
    ),
    "neighbour": (window("lag(id) OVER (PARTITION BY status ORDER BY event_time)"), "lag", "every row unique"),
    "thirds": (window("id, ntile(3) OVER (ORDER BY event_time)"), "ntile", "every row unique"),
    "first-of-a-window": (window("first_value(id) OVER (PARTITION BY status ORDER BY event_time)"), "first", "min"),
    "running-sum-of-floats": (window("sum(amount) OVER (PARTITION BY status ORDER BY event_time)"), "sum", "DECIMAL"),
    "running-count-of-rows": (
        window("id, count(*) OVER (ORDER BY event_time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"), "count", "unique",
    ),
    "float-as-text": ("SELECT event_time, CAST(amount AS STRING) AS x FROM orders", "CAST", "DECIMAL"),
    "float-beside-text": ("SELECT event_time, amount || '!' AS x FROM orders", "CAST", "DECIMAL"),
    "logarithm": ("SELECT event_time, ln(amount) AS x FROM orders", "ln", "digest"),
    "zones": ("SELECT event_time, from_utc_timestamp(event_time, 'Asia/Tokyo') AS x FROM orders", "from_utc", "digest"),
    "letters": ("SELECT event_time, upper(status) AS x FROM orders", "upper", "digest"),
}  # fmt: skip

# Deterministic, whatever the order: must be neither rejected nor pinned.
REPRODUCIBLE = {
    "map": "SELECT event_time, id * 2 AS twice FROM orders WHERE amount > 1.5",
    "sum-of-decimals": aggregate("sum(CAST(id AS DECIMAL(18, 2)))"),
    "average-of-decimals": aggregate("avg(CAST(id AS DECIMAL(18, 2)))"),
    "sum-of-whole-numbers": aggregate("sum(id)"),
    "count": aggregate("count(*)"),
    "count-distinct": aggregate("count(DISTINCT status)"),
    "count-if": aggregate("count_if(id > 3)"),
    "least-and-greatest": aggregate("struct(min(id), max(status), max(day))"),
    "every": aggregate("every(id > 3)"),
    "bits": aggregate("bit_xor(id)"),
    "sorted-list": aggregate("sort_array(collect_list(id))"),
    "sorted-set": aggregate("sort_array(collect_set(status))"),
    "size-of-a-set": aggregate("size(collect_set(status))"),
    "exact-percentile": aggregate("percentile(id, 0.5)"),
    "median": aggregate("median(id)"),
    "filtered": aggregate("count(*) FILTER (WHERE id > 3)"),
    "distinct": "SELECT DISTINCT event_time, status FROM orders",
    "order-after-group-by": "SELECT event_time, status, count(*) AS n FROM orders GROUP BY event_time, status",
    "grouping-sets": "SELECT event_time, status, count(*) AS n FROM orders GROUP BY CUBE (event_time, status)",
    "having": "SELECT event_time, count(*) AS n FROM orders GROUP BY event_time HAVING count(*) > 3",
    "join": "SELECT a.event_time, b.id FROM orders a JOIN orders b ON a.id = b.id",
    "outer-join": "SELECT a.event_time, b.id FROM orders a FULL OUTER JOIN orders b ON a.id = b.id",
    "join-without-equality": "SELECT a.event_time, b.id FROM orders a JOIN orders b ON a.id < b.id",
    "semi-join": "SELECT event_time FROM orders WHERE id IN (SELECT id FROM orders WHERE status = 'x')",
    "exists": "SELECT event_time FROM orders a WHERE EXISTS (SELECT 1 FROM orders b WHERE b.id = a.id + 1)",
    "union": "SELECT event_time FROM orders UNION ALL SELECT event_time FROM orders",
    "except": "SELECT event_time FROM orders EXCEPT SELECT event_time FROM orders WHERE id > 3",
    "intersect": "SELECT event_time FROM orders INTERSECT SELECT event_time FROM orders WHERE id > 3",
    "sort": "SELECT event_time FROM orders ORDER BY id",
    "limit-of-a-total-order": "SELECT event_time, id FROM orders ORDER BY id, event_time LIMIT 3",
    "limit-of-groups": """
        SELECT max(event_time) AS event_time, status, count(*) AS n FROM orders GROUP BY status ORDER BY ALL LIMIT 3
    """,
    "rank": window("rank() OVER (PARTITION BY status ORDER BY id)"),
    "dense-rank": window("dense_rank() OVER (ORDER BY id)"),
    "running-sum": window("sum(id) OVER (PARTITION BY status ORDER BY event_time)"),
    "sum-of-a-partition": window("sum(id) OVER (PARTITION BY status)"),
    "row-number-of-a-total-order": (
        "SELECT event_time, row_number() OVER (PARTITION BY event_time ORDER BY id) AS n"
        " FROM (SELECT DISTINCT event_time, id FROM orders)"
    ),
    "row-number-of-equal-rows": window("row_number() OVER (ORDER BY event_time)"),
    "explode": "SELECT event_time, explode(array(1, 2)) AS x FROM orders",
    "pivot": (
        "SELECT * FROM (SELECT event_time, status, id FROM orders) PIVOT (sum(id) FOR status IN ('a', 'b'))"
    ),
    "scalar-subquery": "SELECT event_time, (SELECT max(id) FROM orders) AS m FROM orders",
    "values": "SELECT * FROM VALUES (TIMESTAMP '2020-01-01 00:00:00') AS t (event_time)",
}  # fmt: skip

REJECTED = {
    "clock": (aggregate("max(current_timestamp())"), "current_timestamp", "the event time column"),
    "random": ("SELECT status, count(*) AS n FROM orders WHERE rand() < 0.5 GROUP BY status", "rand", "xxhash64"),
    "identity": ("SELECT u, count(*) AS n FROM (SELECT uuid() AS u FROM orders) GROUP BY u", "uuid", "xxhash64"),
    "file-name": ("SELECT DISTINCT input_file_name() AS f FROM orders", "input_file_name", "computed from the row"),
    "partition": ("SELECT DISTINCT spark_partition_id() AS p FROM orders", "SPARK_PARTITION", "from the row"),
    "number": ("SELECT event_time, monotonically_increasing_id() AS n FROM orders", "monotonically", "from the row"),
    "random-order": ("SELECT event_time FROM orders ORDER BY rand() LIMIT 3", "rand", "xxhash64"),
    "random-in-a-subquery": ("SELECT id FROM orders WHERE id IN (SELECT id FROM orders WHERE rand() < 1)", "ran", ""),
    "sample": ("SELECT event_time FROM orders TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "pmod(xxhash64(key), 100)"),
    "sample-with-a-seed": (
        "SELECT event_time FROM orders TABLESAMPLE (10 PERCENT) REPEATABLE (7)", "TABLESAMPLE", "pmod",
    ),
    "full-join-without-equality": (
        "SELECT a.event_time FROM orders a FULL OUTER JOIN orders b ON a.id < b.id", "FULL OUTER JOIN", "with =",
    ),
    "encryption": ("SELECT event_time, aes_encrypt(status, 'k') AS x FROM orders", "query", "can be run"),
}  # fmt: skip


def grade_of(session, query):
    return session.check(transform_sql(query), [QueryTable(name="orders", vocabulary=Vocabulary(), schema=MORE)])


@pytest.mark.parametrize(("query", "expression", "rewrite"), [pytest.param(*v, id=k) for k, v in PINNED.items()])
def test_what_is_exact_only_in_one_order_is_pinned(spark_session, query, expression, rewrite):
    grade = grade_of(spark_session, query)
    assert grade.level is GradeLevel.PINNED, grade
    found = [each for each in grade.findings if expression in each.expression]
    assert found, grade.findings
    assert any(rewrite in each.rewrite for each in found), found
    assert all(each.reason for each in found)


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in REPRODUCIBLE.items()])
def test_what_follows_from_the_rows_is_replayable(spark_session, query):
    grade = grade_of(spark_session, query)
    assert (grade.level, grade.findings) == (GradeLevel.REPRODUCIBLE, ())


@pytest.mark.parametrize(("query", "expression", "rewrite"), [pytest.param(*v, id=k) for k, v in REJECTED.items()])
def test_what_no_order_makes_repeatable_is_rejected(spark_session, query, expression, rewrite):
    grade = grade_of(spark_session, query)
    assert grade.level is GradeLevel.REJECTED
    (finding,) = grade.findings
    assert expression in finding.expression or expression == "query"
    assert rewrite in finding.rewrite


def test_query_that_cannot_be_executed_has_its_grade_and_the_obstacle_beside_it(spark_session):
    grade = grade_of(
        spark_session, "SELECT max(event_time) AS event_time, map(status, count(*)) AS m FROM orders GROUP BY status"
    )
    assert (grade.level, grade.schema, grade.transform_class) == (GradeLevel.REPRODUCIBLE, None, None)
    assert grade.obstacle is not None
    assert "cannot be compared" in grade.obstacle.reason
    assert grade_of(spark_session, REPRODUCIBLE["map"]).obstacle is None


def test_grade_of_several_steps_is_the_lowest_of_them(spark_session):
    steps = transform_sql(("t", "SELECT event_time, upper(status) AS s FROM orders"), "SELECT event_time, s FROM t")
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=MORE)
    assert spark_session.check(steps, [table]).level is GradeLevel.PINNED
