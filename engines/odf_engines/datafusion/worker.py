"""The program inside the sandbox: answers requests; see ``host.worker``.

The sandbox has Python's standard library, datafusion, pyarrow, numpy, msgspec, ``odf_protocol`` and ``odf_engines``,
nothing else.

Source: clauses ENGINE-3 to ENGINE-6 and FUSION-1 in ``spec/extensions/engine-contract.md``.
"""

import importlib
from pathlib import Path
from typing import Any

import datafusion  # noqa: F401 - now, and not with the first request

from odf_engines.confined.service import Service
from odf_engines.host.worker import serve

OPERATIONS = {
    "check": "odf_engines.datafusion.transform.run_check",
    "preprocess": "odf_engines.datafusion.query.run_preprocess",
    "query": "odf_engines.datafusion.query.run",
    "transform": "odf_engines.datafusion.transform.run",
}


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends; ``memory_bytes`` are those of the session."""
    memory_bytes: int = arguments["memory_bytes"]

    def run(operation: str, request: Any, folder: Path) -> dict[str, object]:
        module, _, function = OPERATIONS[operation].rpartition(".")
        result: dict[str, object] = getattr(importlib.import_module(module), function)(request, folder, memory_bytes)
        return result

    serve(Service(), run, memory_bytes)
