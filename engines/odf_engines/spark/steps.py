"""The steps of a transform: queries in order, each but the last named for those after it.

Source: ODF "TransformSql"; clause GATE-1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odf_engines.contract import Finding
from odf_engines.errors import InvalidQueryError
from odf_engines.host.query_names import quote_dotted_names
from odf_engines.host.steps import OUTPUT, steps_of
from odf_engines.spark.gate.purity import check_purity
from odf_engines.spark.gate.row_order import find_order_dependence
from odf_engines.spark.gate.statement import ParsedQuery, analyse_query, parse_query
from odf_engines.spark.gate.written import find_written
from odf_engines.spark.plans import analysed_plan, rows_of
from odf_engines.spark.relations import register
from odf_protocol.events import TransformSql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Analysis", "analyse_transform"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A transform whose result follows from its inputs.

    Attributes:
        rows: Of its last step.
        findings: What pins it.
        depends_on_order: Whether the result is exact only in one fixed order of execution.
        parsed: Plans of all steps, before names were resolved.
    """

    rows: "DataFrame"
    findings: tuple[Finding, ...]
    depends_on_order: bool
    parsed: tuple[Any, ...]

    @property
    def plan(self) -> Any:
        """Of the last step, analysed."""
        return analysed_plan(self.rows)


def analyse_transform(spark: "SparkSession", transform: TransformSql, inputs: "Mapping[str, DataFrame]") -> Analysis:
    """Take a transform through the part of the gate that all kinds of transforms share.

    Args:
        spark: A session; views of the names of inputs and steps are replaced.
        transform: The queries.
        inputs: Rows of every input by its alias.

    Raises:
        InvalidQueryError, NotReplayableError: The gate's refusal.
    """
    names = list(inputs)
    temporal = frozenset(each.name for each in transform.temporal_tables or ())
    for alias, rows in inputs.items():
        register(rows, alias)
    dataset = None
    findings: dict[str, Finding] = {}
    depends_on_order = False
    parsed: list[ParsedQuery] = []
    steps = steps_of(transform)
    for position, step in enumerate(steps):
        is_last = position == len(steps) - 1
        sql = quote_dotted_names(step.query, names)
        parsed.append(parse_query(spark, sql, names, temporal=temporal))
        dataset = analyse_query(spark, parsed[-1])
        plan = dataset.queryExecution().analyzed()
        in_order = find_order_dependence(plan, inputs)
        depends_on_order = depends_on_order or bool(in_order)
        for finding in (*check_purity(plan, inputs), *find_written(parsed[-1]), *in_order):
            findings.setdefault(finding.expression, finding)
        if not is_last and step.alias is not None:
            if step.alias in names or step.alias == OUTPUT:
                raise InvalidQueryError(f"two inputs or steps are called {step.alias}")
            dataset.createOrReplaceTempView(f"`{step.alias.replace('`', '``')}`")
            names.append(step.alias)
    return Analysis(
        rows_of(spark, dataset), tuple(findings.values()), depends_on_order, tuple(each.plan for each in parsed)
    )
