"""Our program beside an added engine, inside its sandbox: answers the host for it.

The sandbox has Python's standard library, grpc, pyarrow, numpy, msgspec, ``odf_protocol`` and ``odf_engines``, and the
engine. The engine runs as the same user, so it can do to this program whatever it wants: nothing here is a defence.

Source: clauses ADDED-6 to ADDED-9 in ``spec/plug-ins/foreign.md``; ENGINE-4.
"""

from pathlib import Path
from typing import Any

import msgspec

from odf_engines.confined.service import Service
from odf_engines.contract import GradeLevel
from odf_engines.errors import EngineError, EngineFailureError, EngineMissingError, InvalidQueryError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.messages import error_to_fields
from odf_engines.host.worker import answer_request
from odf_foreign.added.description import EngineStart
from odf_foreign.added.program import EngineProgram
from odf_foreign.added.requests import answer_of, read_schema, success_of, translate, trial_of

_SCRATCH = Path("/scratch")
_UNKNOWN = "this node does not know whether its results can be repeated; it holds them to the digest of the engine"
_REMEDY = "an engine of this node's own, which grades each expression"


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends.

    Args:
        arguments: ``name`` of the engine, and ``start``, an ``EngineStart``.
    """
    service = Service()
    try:
        program = EngineProgram(msgspec.convert(arguments["start"], EngineStart))
        program.wait_until_it_answers()
    except EngineError as error:
        service.send({"error": error_to_fields(error)})
        return

    tried: list[tuple[Any, dict[str, object]]] = []  # the last query, which a node asks about before each step

    def run(operation: str, request: Any, folder: Path) -> dict[str, object]:
        if operation not in {"check", "transform"}:
            raise EngineMissingError(arguments["name"], capability=operation)
        if operation == "transform":
            return _transform(program, request, folder)
        if not tried or tried[0][0] != request:
            tried[:] = [(request, _grade(program, arguments["name"], request, folder))]
        return tried[0][1]

    service.report_ready()
    for request in service.iter_requests():
        answer = answer_request(request, run, _explain)
        # An engine that failed once is not asked again.
        is_last = answer.get("error", {}).get("kind") == EngineFailureError.__name__
        service.send({**answer, "is_last": is_last})
        if is_last:
            return


def _transform(program: EngineProgram, request: Any, folder: Path) -> dict[str, object]:
    answer = program.transform(translate(request, folder, _SCRATCH))
    return answer_of(request, success_of(answer), folder)


def _grade(program: EngineProgram, name: str, request: dict[str, Any], folder: Path) -> dict[str, object]:
    """Try a query over no rows (ADDED-9)."""
    parts = request["transform"], request["inputs"], request["vocabulary"]
    try:
        success_of(program.transform(trial_of(*parts, folder, _SCRATCH)))
    except InvalidQueryError as error:
        refused = {"expression": "query", "reason": error.message, "rewrite": "a query that the engine can run"}
        return {"level": GradeLevel.REJECTED.value, "findings": [refused], "schema": None, "obstacle": None}
    finding = {"expression": f"engine {name}", "reason": _UNKNOWN, "rewrite": _REMEDY}
    schema = schema_text(read_schema(folder))
    return {"level": GradeLevel.PINNED.value, "findings": [finding], "schema": schema, "obstacle": None}


def _explain(error: Exception) -> EngineError:
    return error if isinstance(error, EngineError) else EngineFailureError(f"{type(error).__name__}: {error}"[:2000])
