"""The operation ``check``: a grade for a transform, before it is published.

Source: clauses ENGINE-7, FUSION-5 and FUSION-8 in ``spec/extensions/engine-contract.md``.
"""

import shutil
from pathlib import Path
from typing import Any

from odf_engines.contract import GradeLevel
from odf_engines.datafusion.context import make_context
from odf_engines.datafusion.gate import find_limits
from odf_engines.datafusion.output import Result, check_columns, in_slice_types, output_schema
from odf_engines.datafusion.relations import empty_rows
from odf_engines.datafusion.steps import plan_transform
from odf_engines.errors import InvalidQueryError, NotReplayableError
from odf_engines.host.messages import schema_text


def run(request: dict[str, Any], folder: Path, memory_bytes: int) -> dict[str, object]:
    """Grade the transform of a request; see ``host.worker`` for what goes in and out."""
    try:
        return _grade(request, folder / "work", memory_bytes)
    except NotReplayableError as error:
        return _refusal(error.expression, error.reason, error.rewrite)
    except InvalidQueryError as error:
        return _refusal(error.position or "query", error.message, "a query that can be run")
    finally:
        shutil.rmtree(folder / "work", ignore_errors=True)


def _grade(request: dict[str, Any], work: Path, memory_bytes: int) -> dict[str, object]:
    vocabulary = request["vocabulary"]
    context = make_context(memory_bytes, is_repeatable=True)
    inputs = {
        each.name: empty_rows(context, each.schema, work / str(number), alias=each.name)
        for number, each in enumerate(request["inputs"])
    }
    raw = plan_transform(context, request["transform"], inputs)
    result = in_slice_types(raw, vocabulary)
    check_columns(result.schema(), vocabulary)
    schema = output_schema(Result(result, vocabulary, work).schema, vocabulary)
    operations = {each.vocabulary.op for each in request["inputs"]}
    findings = [
        {"expression": each.expression, "reason": each.reason, "rewrite": each.rewrite}
        for each in find_limits(raw, operations=operations, op=vocabulary.op)
    ]
    level = GradeLevel.PINNED if findings else GradeLevel.REPLAYABLE
    return {"level": level.value, "findings": findings, "schema": schema_text(schema), "obstacle": None}


def _refusal(expression: str, reason: str, rewrite: str) -> dict[str, object]:
    finding = {"expression": expression, "reason": reason, "rewrite": rewrite}
    return {"level": GradeLevel.REFUSED.value, "findings": [finding], "schema": None, "obstacle": None}
