"""The operation ``check``: a grade for a transform, before it is published.

Source: clauses ENGINE-7, GATE-6 and GATE-13.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_engines.contract import Finding, GradeLevel
from odf_engines.errors import InvalidQueryError, NotReplayableError
from odf_engines.host.messages import schema_text
from odf_engines.spark.known_maps import examine_transform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]


def run(spark: "SparkSession", request: dict[str, Any], _folder: Path) -> dict[str, object]:
    """Grade the transform of a request; see ``worker`` for what goes in and out."""
    try:
        analysis, known = examine_transform(spark, request["transform"], request["inputs"], request["vocabulary"])
    except NotReplayableError as error:
        return _refusal(error.expression, error.reason, error.rewrite)
    except InvalidQueryError as error:
        return _refusal(error.position or "query", error.message, "a query that can be run")
    findings = [_plain(each) for each in analysis.findings]
    level = GradeLevel.PINNED if findings else GradeLevel.REPLAYABLE
    schema = None if known is None else schema_text(known.schema)
    obstacle = None if analysis.obstacle is None else _plain(analysis.obstacle)
    return {"level": level.value, "findings": findings, "schema": schema, "obstacle": obstacle}


def _plain(finding: Finding) -> dict[str, str]:
    return {"expression": finding.expression, "reason": finding.reason, "rewrite": finding.rewrite}


def _refusal(expression: str, reason: str, rewrite: str) -> dict[str, object]:
    finding = {"expression": expression, "reason": reason, "rewrite": rewrite}
    return {"level": GradeLevel.REFUSED.value, "findings": [finding], "schema": None, "obstacle": None}
