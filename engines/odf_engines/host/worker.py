"""The side of a guest that every engine has in common.

A guest's program is a module with ``main(arguments)`` that makes a ``Service``, loads what it needs, and answers as
``serve`` does. Its operations get the request as the dataclass that the host sent, with
every path in it already a path inside the sandbox (inputs are read only), and a new empty folder for all the files they
write. They return plain JSON values: file names relative to the folder, counts, offsets, milliseconds; an Arrow schema
as ``arrow_texts.schema_text`` of it.

Source: clauses ENGINE-3 to ENGINE-6 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_engines.confined.service import Request, Service
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.messages import decode_message, error_to_fields
from odf_engines.progress import telling

OUTPUT_VARIABLE = "ODF_ENGINE_OUTPUT"
"""Where in the sandbox a guest writes, if that is another folder than usual."""
_OUTPUT = "/exchange/out"


def output_folder() -> Path:
    """Return the one folder that this program can write to."""
    return Path(os.environ.get(OUTPUT_VARIABLE, _OUTPUT))


def answer_request(
    request: Request,
    run: Callable[[str, Any, Path], dict[str, object]],
    explain: Callable[[Exception], EngineError],
) -> dict[str, Any]:
    """Answer one request.

    Args:
        request: It; progress is reported to who asked (ENGINE-29).
        run: Does what an operation asks for: its name, the request, the folder for files.
        explain: Says whose fault a failure is.

    Returns:
        The header of the answer.
    """
    started = time.perf_counter()
    folder = output_folder() / str(request.arguments["number"])
    folder.mkdir(mode=0o700)
    try:
        with telling(request.report):
            result = run(request.operation, decode_message(request.body.decode("ascii")), folder)
    except Exception as error:  # noqa: BLE001 - the edge of the task: the host gets the kind, the log the rest
        if not isinstance(error, EngineError | MemoryError):
            traceback.print_exc()
        return {"error": error_to_fields(explain(error))}
    return {"seconds": time.perf_counter() - started, "result": result}


def explain_plainly(error: Exception, memory_bytes: int) -> EngineError:
    """Say whose fault a failure is, where the library says no more of it; ``memory_bytes`` are those of the session."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, MemoryError):
        return LimitExceededError("memory_bytes", allowed=memory_bytes)
    return EngineFailureError(f"{type(error).__name__}: {error}"[:2000])


def serve(service: Service, run: Callable[[str, Any, Path], dict[str, object]], memory_bytes: int) -> None:
    """Report that we are ready, and answer until the input ends; for ``run`` see ``answer_request``."""
    service.report_ready()
    for request in service.iter_requests():
        service.send(answer_request(request, run, lambda error: explain_plainly(error, memory_bytes)))
        # What a large request gave back would count against the limit of the next one.
        pa.default_memory_pool().release_unused()
