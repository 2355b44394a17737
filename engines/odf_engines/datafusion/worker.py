"""The program inside the sandbox: answers requests, one JSON line each way; see ``host.worker``.

The sandbox has Python's standard library, datafusion, pyarrow, numpy, msgspec, ``odf_protocol`` and ``odf_engines``,
nothing else.

Source: clauses ENGINE-3 to ENGINE-6 and FUSION-1 in ``spec/extensions/engine-contract.md``.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odf_engines.errors import EngineError

OPERATIONS = {
    "check": "odf_engines.datafusion.check",
    "preprocess": "odf_engines.datafusion.preprocess",
    "query": "odf_engines.datafusion.query",
    "transform": "odf_engines.datafusion.transform",
}


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends.

    Args:
        arguments: ``limits`` for the kernel, and ``memory_bytes`` of the session.
    """
    from odf_engines.sandbox.resources import set_kernel_limits

    set_kernel_limits(arguments["limits"])
    from odf_engines.host.worker import READY, answer_line, take_answers

    answers = take_answers()
    importlib.import_module("datafusion")
    memory_bytes: int = arguments["memory_bytes"]

    def run(operation: str, request: Any, folder: Path) -> dict[str, object]:
        module = importlib.import_module(OPERATIONS[operation])
        result: dict[str, object] = module.run(request, folder, memory_bytes)
        return result

    print(json.dumps(READY), file=answers, flush=True)
    for line in sys.stdin:
        answer = answer_line(line, run, lambda error: _explain(error, memory_bytes))
        print(json.dumps(answer, ensure_ascii=True), file=answers, flush=True)


def _explain(error: Exception, memory_bytes: int) -> "EngineError":
    from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError

    if isinstance(error, EngineError):
        return error
    if isinstance(error, MemoryError):
        return LimitExceededError("memory_bytes", allowed=memory_bytes)
    return EngineFailureError(f"{type(error).__name__}: {error}"[:2000])


if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site"]
    main(json.loads(sys.argv[1]))
