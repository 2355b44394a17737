"""The operation ``check``: a grade for a transform, before it is published.

Source: clauses ENGINE-7 and GATE-6.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_engines.contract import Finding, GradeLevel
from odf_engines.errors import InvalidQueryError, NotReplayableError
from odf_engines.spark.map_plan import carry_source
from odf_engines.spark.relations import empty_rows
from odf_engines.spark.slices import output_schema
from odf_engines.spark.steps import analyse_transform
from odf_engines.spark.worker import schema_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]


def run(spark: "SparkSession", request: dict[str, Any], _folder: Path) -> dict[str, object]:
    """Grade the transform of a request; see ``worker`` for what goes in and out."""
    vocabulary = request["vocabulary"]
    try:
        inputs = {
            table.name: (empty_rows(spark, table.schema, alias=table.name), table.vocabulary)
            for table in request["inputs"]
        }
        analysis = analyse_transform(spark, request["transform"], inputs, vocabulary)
        schema = None
        if analysis.map is not None:
            alias = analysis.map.input_alias
            result = carry_source(spark, analysis.plan, inputs[alias][0], alias, inputs[alias][1])
            own = type(result.schema)(result.schema.fields[:-2])
            schema = schema_text(output_schema(own.json(), vocabulary))
    except NotReplayableError as error:
        return _refusal(error.expression, error.reason, error.rewrite)
    except InvalidQueryError as error:
        return _refusal(error.position or "query", error.message, "a query that can be run")
    findings = [_plain(each) for each in analysis.findings]
    level = GradeLevel.PINNED if findings else GradeLevel.REPLAYABLE
    obstacle = None if analysis.obstacle is None else _plain(analysis.obstacle)
    return {"level": level.value, "findings": findings, "schema": schema, "obstacle": obstacle}


def _plain(finding: Finding) -> dict[str, str]:
    return {"expression": finding.expression, "reason": finding.reason, "rewrite": finding.rewrite}


def _refusal(expression: str, reason: str, rewrite: str) -> dict[str, object]:
    finding = {"expression": expression, "reason": reason, "rewrite": rewrite}
    return {"level": GradeLevel.REFUSED.value, "findings": [finding], "schema": None, "obstacle": None}
