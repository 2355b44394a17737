"""The steps of a transform: queries in order, each but the last named for those after it.

Source: ODF "TransformSql"; clause GATE-1.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odf_engines.contract import Finding
from odf_engines.errors import InvalidQueryError, NotReplayableError
from odf_engines.host.query_names import quote_dotted_names
from odf_engines.spark.gate.map_class import MapQuery, NoMapError, check_map
from odf_engines.spark.gate.purity import check_purity
from odf_engines.spark.gate.row_order import find_order_dependence
from odf_engines.spark.gate.statement import analyse_query, parse_query
from odf_engines.spark.relations import register
from odf_protocol.events import SqlQueryStep, TransformSql
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Analysis", "analyse_transform", "steps_of"]

_OUTPUT = "__output__"  # how other engines name the result of the last step


@dataclass(frozen=True, slots=True)
class Analysis:
    """A transform that passed the gate.

    Attributes:
        plan: Of its last step.
        findings: What pins it.
        map: What is known of it if it is a map.
        obstacle: Why it is none.
    """

    plan: Any
    findings: tuple[Finding, ...]
    map: MapQuery | None
    obstacle: Finding | None = None

    def get_map(self) -> MapQuery:
        """Return what is known of a map.

        Raises:
            NotReplayableError: It is none.
        """
        if self.map is None:
            assert self.obstacle is not None
            raise NotReplayableError(self.obstacle.expression, self.obstacle.reason, self.obstacle.rewrite)
        return self.map


def steps_of(transform: TransformSql) -> tuple[SqlQueryStep, ...]:
    """Return the queries in order.

    Raises:
        InvalidQueryError: None, or one that later steps cannot name.
    """
    steps = transform.queries or ()
    if transform.query is not None:
        steps = (*steps, SqlQueryStep(query=transform.query))
    if not steps:
        raise InvalidQueryError("a transform has at least one query")
    for step in steps[:-1]:
        if step.alias is None:
            raise InvalidQueryError("only the last query may be without an alias")
    return steps


def analyse_transform(
    spark: "SparkSession",
    transform: TransformSql,
    inputs: "dict[str, tuple[DataFrame, Vocabulary]]",
    vocabulary: Vocabulary,
) -> Analysis:
    """Take a transform through the gate.

    Args:
        spark: A session without views.
        transform: The queries.
        inputs: Rows and vocabulary of every input by its alias.
        vocabulary: Of the output.

    Raises:
        InvalidQueryError, NotReplayableError: The gate's refusal.
    """
    if transform.temporal_tables:
        raise InvalidQueryError("temporal tables need stream processing, which is not available yet")
    names = list(inputs)
    for alias, (rows, _) in inputs.items():
        register(rows, alias)
    plan = None
    findings: dict[str, Finding] = {}
    steps = steps_of(transform)
    for position, step in enumerate(steps):
        is_last = position == len(steps) - 1
        sql = quote_dotted_names(step.query, names)
        dataset = analyse_query(spark, parse_query(spark, sql, names))
        plan = dataset.queryExecution().analyzed()
        for finding in (*check_purity(plan, inputs), *find_order_dependence(plan, inputs)):
            findings.setdefault(finding.expression, finding)
        if not is_last and step.alias is not None:
            if step.alias in names or step.alias == _OUTPUT:
                raise InvalidQueryError(f"two inputs or steps are called {step.alias}")
            dataset.createOrReplaceTempView(f"`{step.alias.replace('`', '``')}`")
            names.append(step.alias)
    found = tuple(findings.values())
    try:
        query = check_map(plan, {alias: each for alias, (_, each) in inputs.items()}, vocabulary)
    except NoMapError as error:
        obstacle = Finding(expression=error.expression, reason=error.reason, rewrite=error.rewrite)
        return Analysis(plan, found, None, obstacle)
    return Analysis(plan, found, query)
