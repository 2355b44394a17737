"""The program inside the sandbox: answers requests, one JSON line each way; see ``host.worker``.

The sandbox has Python's standard library, datafusion, pyarrow, numpy, msgspec, ``odf_protocol`` and ``odf_engines``,
nothing else.

Source: clauses ENGINE-3 to ENGINE-6 and FUSION-1 in ``spec/extensions/engine-contract.md``.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

OPERATIONS = {
    "check": "odf_engines.datafusion.transform.run_check",
    "preprocess": "odf_engines.datafusion.query.run_preprocess",
    "query": "odf_engines.datafusion.query.run",
    "transform": "odf_engines.datafusion.transform.run",
}


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends.

    Args:
        arguments: ``limits`` for the kernel, and ``memory_bytes`` of the session.
    """
    from odf_engines.sandbox.resources import set_kernel_limits

    set_kernel_limits(arguments["limits"])
    from odf_engines.host.worker import serve, take_answers

    answers = take_answers()
    importlib.import_module("datafusion")
    memory_bytes: int = arguments["memory_bytes"]

    def run(operation: str, request: Any, folder: Path) -> dict[str, object]:
        module, _, function = OPERATIONS[operation].rpartition(".")
        result: dict[str, object] = getattr(importlib.import_module(module), function)(request, folder, memory_bytes)
        return result

    serve(answers, run, memory_bytes)


if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site"]
    main(json.loads(sys.argv[1]))
