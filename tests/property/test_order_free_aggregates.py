"""GATE-11, SWITCH-3: an aggregate that the gate lets follow from no order of rows gives the same bits in any.

Every aggregate of Spark's that a transform may call is judged over whole numbers, text, decimals, dates and
floating-point numbers. Those that pin nothing are computed over the same rows in several orders and cuts; those that
follow from an order are shown to be judged so, by what the gate says of each.
"""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from odf_engines.contract import GradeLevel, QueryTable
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.functions import FUNCTIONS, FunctionUse
from support.large_histories import Size, random_orders
from support.transforms import transform_sql
from support.view_histories import APPEND, WITH_FLOATS, Change, View, fold

pytestmark = pytest.mark.spark

COLUMNS = ("a", "s", "f", "CAST(a AS DECIMAL(20, 2))", "a > 1")
WITH_KEY = {"corr", "covar_pop", "covar_samp", "max_by", "min_by"}
WITH_NUMBER = {"approx_percentile": 0.5, "histogram_numeric": 3, "percentile": 0.5, "percentile_approx": 0.5}
WITHIN_GROUP = {"percentile_cont", "percentile_disc"}
OF_TEXT = {
    "any_value", "array_agg", "collect_list", "collect_set", "count", "first", "first_value", "last", "last_value",
    "listagg", "max", "max_by", "min", "min_by", "mode", "string_agg",
}  # fmt: skip
LISTS = {"array_agg", "collect_list", "collect_set"}
NOT_AGGREGATES = {
    "cume_dist", "dense_rank", "grouping", "grouping_id", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank",
    "row_number",
}  # fmt: skip
# What keeps the order of rows, or adds floating-point numbers, whatever it is called.
BY_ORDER = {
    "any_value(a)", "approx_percentile(a, 0.5)", "array_agg(a)", "avg(a)", "avg(f)", "collect_list(a)",
    "collect_set(a)", "corr(a, a)", "first(a)", "first_value(s)", "histogram_numeric(a, 3)", "kurtosis(a)", "last(a)",
    "last_value(s)", "listagg(s)", "max(f)", "max_by(a, s)", "mean(f)", "median(f)", "min(f)", "min_by(a, s)",
    "mode(a)", "percentile(f, 0.5)", "sort_array(collect_list(f))", "std(a)", "string_agg(s)", "sum(f)", "var_pop(a)",
}  # fmt: skip
FREE = {
    "bit_and(a)", "bool_or(a > 1)", "count(DISTINCT f)", "count(s)", "every(a > 1)", "max(s)", "median(a)", "min(a)",
    "percentile(a, 0.5)", "sort_array(collect_list(s))", "sort_array(collect_set(a))", "sum(a)",
    "sum(CAST(a AS DECIMAL(20, 2)))", "sum(DISTINCT a)",
}  # fmt: skip


def aggregates() -> list[str]:
    reason = FUNCTIONS["any_value"].reason
    return sorted(
        name
        for name, grade in FUNCTIONS.items()
        if grade.use is FunctionUse.REPRODUCIBLE and grade.reason == reason and name not in NOT_AGGREGATES
    )


def iter_calls() -> Iterator[str]:
    for name in aggregates():
        for column in COLUMNS:
            if column == "s" and name not in OF_TEXT:
                continue  # what it would be cast to it may not hold
            if name in WITH_NUMBER:
                yield f"{name}({column}, {WITH_NUMBER[name]})"
            elif name in WITHIN_GROUP:
                yield f"{name}(0.5) WITHIN GROUP (ORDER BY {column})"
            elif name in WITH_KEY or name.startswith("regr_"):
                yield f"{name}({column}, a)"
            else:
                yield f"{name}({column})"
            if name in LISTS:
                yield f"sort_array({name}({column}))"
    yield from ("count(DISTINCT f)", "sum(DISTINCT a)", "max_by(a, s)", "min_by(a, s)")


def query_of(calls: Sequence[str]) -> str:
    columns = ", ".join(f"{call} AS v{number}" for number, call in enumerate(calls))
    return f"SELECT max(event_time) AS event_time, k, {columns} FROM orders GROUP BY k"


@pytest.fixture(scope="module")
def judged(spark_session) -> dict[str, GradeLevel]:
    """What the gate says of every call that Spark can analyse."""
    tables = [QueryTable(name="orders", vocabulary=Vocabulary(), schema=WITH_FLOATS["orders"])]
    found = {}
    for call in iter_calls():
        try:
            grade = spark_session.check(transform_sql(query_of([call])), tables, vocabulary=Vocabulary())
        except (InvalidQueryError, NotReproducibleError):
            continue
        found[call] = grade.level
    return found


def test_every_aggregate_is_judged_over_some_type(judged) -> None:
    levels = {call: level for call, level in judged.items() if level is not GradeLevel.REJECTED}
    unjudged = [name for name in aggregates() if not any(f"{name}(" in call for call in levels)]
    assert unjudged == []
    assert {call for call in BY_ORDER if judged[call] is not GradeLevel.PINNED} == set()
    assert {call for call in FREE if judged[call] is not GradeLevel.REPRODUCIBLE} == set()


def test_aggregates_that_follow_from_no_order_are_the_same_in_any(spark_session, tmp_path, judged) -> None:
    free = [call for call, level in judged.items() if level is GradeLevel.REPRODUCIBLE]
    assert len(free) > 30
    random = Random(11)
    rows = [Change(APPEND, row) for row in random_orders(random, Size(groups=140, rows=0), 3_000)]
    results = []
    for number, slices in enumerate((1, 7, 3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        view = View.over(spark_session, query_of(free), folder, {"orders": WITH_FLOATS["orders"]})
        view.is_exact = True
        cuts = [rows[start::slices] for start in range(slices)]
        view.blocks({"orders": [(cut, None) for cut in cuts]})
        results.append(fold(view.changes))
        random.shuffle(rows)
    assert len(results[0]) == 141
    assert results[0] == results[1] == results[2]
