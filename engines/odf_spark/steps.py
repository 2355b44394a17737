"""The steps of a transform: queries in order, each but the last named for those after it.

Source: ODF "TransformSql"; clause GATE-1.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from odf_engines.contract import Finding
from odf_engines.errors import InvalidQueryError
from odf_engines.host.queries import OUTPUT, quote_dotted_names, steps_of
from odf_protocol.events import TransformSql
from odf_protocol.schema_spark import quote_spark_name
from odf_spark.gate.purity import check_purity, find_written
from odf_spark.gate.row_order import find_order_dependence
from odf_spark.gate.statement import ParsedQuery, analyse_query, parse_again, parse_query
from odf_spark.gate.trees import items, iter_plan, simple_name
from odf_spark.java_side import analysed_plan, rows_of
from odf_spark.relations import register

_PARTS = {
    "Aggregate": "aggregate", "Deduplicate": "aggregate", "Distinct": "aggregate",
    "Except": "join", "Intersect": "join", "Join": "join", "LateralJoin": "join", "Window": "window",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedStep:
    """One query of a transform; it knows neither rows nor a session.

    Attributes:
        alias: What later steps call its result; None of the last one.
        query: Before names were resolved.
        parts: What it does by itself of joining, grouping and windowing, known once it was analysed (ENGINE-16).
    """

    alias: str | None
    query: ParsedQuery
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Analysis:
    """A transform whose result follows from its inputs.

    Attributes:
        rows: Of its last step.
        findings: What pins it.
        depends_on_order: Whether the result is exact only in one fixed order of execution.
        steps: That it consists of.
    """

    rows: DataFrame
    findings: tuple[Finding, ...]
    depends_on_order: bool
    steps: tuple[ParsedStep, ...]

    @property
    def plan(self) -> Any:
        """Of the last step, analysed."""
        return analysed_plan(self.rows)


def analyse_transform(
    spark: SparkSession,
    transform: TransformSql,
    inputs: Mapping[str, DataFrame],
    steps: Sequence[ParsedStep] | None = None,
) -> Analysis:
    """Take a transform through the part of the gate that all kinds of transforms share.

    Args:
        spark: A session; views of the names of inputs and steps are replaced.
        transform: The queries.
        inputs: Rows of every input by its alias.
        steps: Of the transform, if they were parsed.

    Raises:
        InvalidQueryError, NotReproducibleError: The gate's rejection.
    """
    steps = steps or parse_steps(spark, transform, inputs)
    dataset = None
    findings: dict[str, Finding] = {}
    depends_on_order = False
    analysed: list[ParsedStep] = []
    for step, dataset in zip(steps, _iter_results(spark, steps, inputs), strict=True):
        plan = dataset.queryExecution().analyzed()
        analysed.append(replace(step, parts=_parts_of(plan, {*inputs, *(each.alias for each in analysed)})))
        in_order = find_order_dependence(plan, inputs)
        depends_on_order = depends_on_order or bool(in_order)
        for finding in (*check_purity(plan, inputs), *find_written(step.query), *in_order):
            findings.setdefault(finding.expression, finding)
    return Analysis(rows_of(spark, dataset), tuple(findings.values()), depends_on_order, tuple(analysed))


def compute_steps(spark: SparkSession, steps: Sequence[ParsedStep], inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of the last step of a transform that passed the gate over inputs with the same columns (GATE-14).

    Args:
        spark: A session; views of the names of inputs and steps are replaced.
        steps: From ``analyse_transform`` or ``reach_steps``.
        inputs: Rows of every input by its alias.

    Raises:
        InvalidQueryError: The engine cannot take it in.
    """
    *_, result = _iter_results(spark, steps, inputs)
    return rows_of(spark, result)


def reach_steps(
    spark: SparkSession,
    transform: TransformSql,
    steps: Sequence[ParsedStep],
    inputs: Collection[str],
    reached_us: Mapping[str, int | None],
) -> tuple[ParsedStep, ...]:
    """Leave out of joins with temporal tables the rows of times that these have not reached.

    Args:
        spark: A session.
        transform: The queries.
        steps: What they are, as they passed the gate.
        inputs: Aliases.
        reached_us: Of every temporal table the time up to which its versions are known, None for up to none.
    """
    names, parsed = list(inputs), []
    for written, step in zip(steps_of(transform), steps, strict=True):
        text = quote_dotted_names(written.query, names)
        parsed.append(replace(step, query=parse_again(spark, step.query, text, reached_us)))
        if step.alias is not None:
            names.append(step.alias)
    return tuple(parsed)


def parse_steps(spark: SparkSession, transform: TransformSql, inputs: Collection[str]) -> tuple[ParsedStep, ...]:
    """Parse the queries of a transform.

    Raises:
        InvalidQueryError, NotReproducibleError: The gate's rejection.
    """
    names = list(inputs)
    temporal = frozenset(each.name for each in transform.temporal_tables or ())
    parsed = []
    *earlier, last = steps_of(transform)
    for step in earlier:
        assert step.alias is not None
        parsed.append(ParsedStep(step.alias, _parse_step(spark, step.query, names, temporal)))
        if step.alias in names or step.alias == OUTPUT:
            raise InvalidQueryError(f"two inputs or steps are called {step.alias}")
        names.append(step.alias)
    return (*parsed, ParsedStep(None, _parse_step(spark, last.query, names, temporal)))


def _parts_of(plan: Any, relations: Collection[str | None]) -> frozenset[str]:
    """List the parts of one query, and not of those that it reads."""
    nodes = list(iter_plan(plan, [each for each in relations if each is not None]))
    found = {_PARTS[name] for node in nodes if (name := simple_name(node)) in _PARTS}
    # Spark makes a join of most subqueries in expressions.
    return frozenset(found | ({"join"} if any(items(node.subqueries()) for node in nodes) else set()))


def _parse_step(
    spark: SparkSession,
    sql: str,
    names: Collection[str],
    temporal: Collection[str],
) -> ParsedQuery:
    return parse_query(spark, quote_dotted_names(sql, names), names, temporal=temporal)


def _iter_results(spark: SparkSession, steps: Sequence[ParsedStep], inputs: Mapping[str, DataFrame]) -> Iterator[Any]:
    """Yield the result of each step, a Java ``Dataset``, and make it known to those after it."""
    for alias, rows in inputs.items():
        register(rows, alias)
    for step in steps:
        dataset = analyse_query(spark, step.query)
        yield dataset
        if step.alias is not None:
            dataset.createOrReplaceTempView(quote_spark_name(step.alias))
