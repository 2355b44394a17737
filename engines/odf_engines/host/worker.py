"""The side of a guest that every engine has in common: one JSON line in, one out.

A guest's program is a module with ``main(arguments)`` that takes its limits on itself, calls ``take_answers``, loads
what it needs, and answers as ``serve`` does. Its operations get the request as the dataclass that the host sent, with
every path in it already a path inside the sandbox (inputs are read only), and a new empty folder for all the files they
write. They return plain JSON values: file names relative to the folder, counts, offsets, milliseconds; an Arrow schema
as ``arrow_texts.schema_text`` of it.

Source: clauses ENGINE-3 to ENGINE-6 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.messages import decode_message, error_to_fields
from odf_engines.progress import telling

OUTPUT_VARIABLE = "ODF_ENGINE_OUTPUT"
"""Where in the sandbox a guest writes, if that is another folder than usual."""
_OUTPUT = "/exchange/out"
READY = {"ready": True}


def output_folder() -> Path:
    """Return the one folder that this program can write to."""
    return Path(os.environ.get(OUTPUT_VARIABLE, _OUTPUT))


def take_answers() -> TextIO:
    """Keep the real output for answers; whatever else is printed goes to the log."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return answers


def answer_line(
    line: str,
    run: Callable[[str, Any, Path], dict[str, object]],
    explain: Callable[[Exception], EngineError],
    answers: TextIO | None = None,
) -> dict[str, Any]:
    """Answer one request.

    Args:
        line: The request.
        run: Does what an operation asks for: its name, the request, the folder for files.
        explain: Says whose fault a failure is.
        answers: Where the answer will go, which hears of progress first (ENGINE-29); None: it hears of none.
    """
    started = time.perf_counter()
    message = decode_message(line)
    folder = output_folder() / str(message["number"])
    folder.mkdir(mode=0o700)
    try:
        with nullcontext() if answers is None else telling(message["number"], answers):
            result = run(message["operation"], message["request"], folder)
    except Exception as error:  # noqa: BLE001 - the edge of the task: the host gets the kind, the log the rest
        if not isinstance(error, EngineError | MemoryError):
            traceback.print_exc()
        return {"number": message["number"], "error": error_to_fields(explain(error))}
    return {"number": message["number"], "seconds": time.perf_counter() - started, "result": result}


def explain_plainly(error: Exception, memory_bytes: int) -> EngineError:
    """Say whose fault a failure is, where the library says no more of it; ``memory_bytes`` are those of the session."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, MemoryError):
        return LimitExceededError("memory_bytes", allowed=memory_bytes)
    return EngineFailureError(f"{type(error).__name__}: {error}"[:2000])


def serve(answers: TextIO, run: Callable[[str, Any, Path], dict[str, object]], memory_bytes: int) -> None:
    """Say that we are ready, and answer until the input ends; for ``run`` see ``answer_line``."""
    print(json.dumps(READY), file=answers, flush=True)
    for line in sys.stdin:
        answer = answer_line(line, run, lambda error: explain_plainly(error, memory_bytes), answers)
        print(json.dumps(answer, ensure_ascii=True), file=answers, flush=True)
        # What a large request gave back would count against the limit of the next one.
        pa.default_memory_pool().release_unused()
