"""The program inside the sandbox: starts Spark once, then answers requests, one JSON line each way.

How to add an operation: write a module inside ``odf_engines.spark`` with a function

    def run(spark: SparkSession, request: SomeRequest, folder: Path) -> dict[str, object]

and name it in ``OPERATIONS``. It gets a fresh Spark session, the request as the dataclass that the host sent, with
every path in it already a path inside the sandbox (inputs are read only), and a new empty folder for all the files it
writes. It returns plain JSON values: file names relative to ``folder``, counts, offsets, milliseconds; an Arrow
schema as ``schema_text`` of it. It raises the errors of ``odf_engines.errors`` for what is the query's or the
source's fault; anything else is reported as a failure of the engine. The module is imported at the first request for
it. What it prints goes to the log.

The host side of an operation is a function that checks the answer and the files as hostile: see ``session``.
The sandbox has Python's standard library, pyspark, py4j, msgspec, numpy, pyarrow, ``odf_protocol`` and ``odf_engines``,
nothing else.

Source: clauses ENGINE-3 to ENGINE-6 and ENGINE-21 in ``spec/extensions/engine-contract.md``.
"""

import base64
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from odf_engines.errors import LimitExceededError

__all__ = ["OPERATIONS", "main", "schema_text"]

OPERATIONS = {
    "check": "odf_engines.spark.check",
    "ingest": "odf_engines.spark.ingest.operation",
    "query": "odf_engines.spark.query",
    "transform": "odf_engines.spark.transform",
}

OUTPUT = Path("/exchange/out")

_OUT_OF_MEMORY = 3  # exit code of Java under -XX:+ExitOnOutOfMemoryError
# How Spark says that memory is not enough for a sort or a join, or a row not for one buffer of Java (2 GiB).
_SHORTAGES = ("UNABLE_TO_ACQUIRE_MEMORY", "OutOfMemoryError", "Cannot grow BufferHolder")
_DEEPEST_CAUSE = 20  # guess: Java's chains of causes are five long
_END_GRACE_S = 30.0  # guess: Java that loses its last thread is gone in milliseconds; a busy machine takes its time


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends.

    Args:
        arguments: ``limits`` for the kernel, ``memory_bytes`` of the session, ``heap_bytes``, ``cores`` and
            ``java_options``.
    """
    from odf_engines.sandbox.resources import set_kernel_limits

    set_kernel_limits(arguments["limits"])
    # What is loaded at the start stays, and looking for garbage in it takes a tenth of the time.
    gc.disable()
    from odf_engines.spark.launch import connect_spark, start_java

    # Java takes longest, so it comes first, and everything else while it starts.
    java = start_java(heap_bytes=arguments["heap_bytes"], cores=arguments["cores"], options=arguments["java_options"])
    # Answers keep the real output to themselves; whatever else is printed goes to the log.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)

    from odf_engines.errors import LimitExceededError
    from odf_engines.host.messages import error_to_fields
    from odf_engines.spark.preload import preload

    preload()
    root = connect_spark(java)
    gc.freeze()
    gc.enable()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        answer = _answer(root, line, arguments["memory_bytes"])
        if "error" in answer and _has_ended(java):
            # Without Java there is nothing left to ask; the host starts another worker.
            if java.returncode == _OUT_OF_MEMORY:
                error = LimitExceededError("memory_bytes", allowed=arguments["memory_bytes"])
                answer["error"] = error_to_fields(error)
            elif java.returncode == -signal.SIGXCPU:
                allowed = arguments["limits"]["RLIMIT_CPU"]
                answer["error"] = error_to_fields(LimitExceededError("cpu_s", allowed=allowed))
            print(json.dumps({**answer, "is_last": True}), file=answers, flush=True)
            return
        print(json.dumps(answer, ensure_ascii=True), file=answers, flush=True)
    if java.stdin is not None:
        java.stdin.close()
    java.wait()


def schema_text(schema: "pa.Schema") -> str:
    """Return an Arrow schema as text for an answer."""
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode("ascii")


def _answer(root: "SparkSession", line: str, memory_bytes: int) -> dict[str, Any]:
    from odf_engines.errors import EngineError, LimitExceededError
    from odf_engines.host.messages import decode_message, error_to_fields

    started = time.perf_counter()
    message = decode_message(line)
    too_large = LimitExceededError("memory_bytes", allowed=memory_bytes)
    folder = OUTPUT / str(message["number"])
    folder.mkdir(mode=0o700)
    try:
        run = importlib.import_module(OPERATIONS[message["operation"]]).run
        result = run(_fresh_session(root), message["request"], folder)
    except MemoryError:
        return {"number": message["number"], "error": error_to_fields(too_large)}
    except EngineError as error:
        # Spark reports its own shortage as a failure of the query.
        is_shortage = any(mark in str(error) for mark in _SHORTAGES)
        return {"number": message["number"], "error": error_to_fields(too_large if is_shortage else error)}
    except Exception as error:  # noqa: BLE001 - the edge of the task: the host gets the kind, the log the rest
        traceback.print_exc()
        try:
            fields = _fields_of_failure(error, too_large)
        except Exception:  # noqa: BLE001 - Java, which knows what went wrong, ended while it was asked
            fields = {"kind": "EngineFailureError", "message": f"{type(error).__name__}, and Java ended"}
        return {"number": message["number"], "error": fields}
    return {"number": message["number"], "seconds": time.perf_counter() - started, "result": result}


def _fields_of_failure(error: Exception, too_large: "LimitExceededError") -> dict[str, Any]:
    from odf_engines.errors import InvalidQueryError
    from odf_engines.host.messages import error_to_fields

    if (cause := _cause_of_failed_job(error)) is not None:
        return error_to_fields(too_large if any(mark in cause for mark in _SHORTAGES) else InvalidQueryError(cause))
    text = f"{type(error).__name__}: {error}".split("\nJVM stacktrace")[0]
    if "java.lang.StackOverflowError" in text:
        from odf_engines.spark.gate.statement import TOO_DEEP

        return error_to_fields(InvalidQueryError(TOO_DEEP))
    return {"kind": "EngineFailureError", "message": text[:2000]}


def _cause_of_failed_job(error: Exception) -> str | None:
    """Return what first went wrong in a job that failed on its rows, None if no job failed (ENGINE-8)."""
    from py4j.protocol import Py4JJavaError

    if not isinstance(error, Py4JJavaError):
        return None
    each, is_job, told = error.java_exception, False, ""
    for _ in range(_DEEPEST_CAUSE):
        told = str(each.toString())[:2000]
        is_job = is_job or "Job aborted due to stage failure" in told
        if (cause := each.getCause()) is None:
            break
        each = cause
    return told.split("\nDriver stacktrace")[0] if is_job else None


def _has_ended(java: "subprocess.Popen[bytes]") -> bool:
    """Whether Java is gone; asked after a failure, when it may be about to go."""
    try:
        java.wait(timeout=_END_GRACE_S if _is_unreachable() else 0)
    except subprocess.TimeoutExpired:
        return False
    return True


def _is_unreachable() -> bool:
    from pyspark import SparkContext

    try:
        SparkContext._jvm.System.nanoTime()  # noqa: SLF001
    except Exception:  # noqa: BLE001 - whatever the pipe to Java says when its other end is gone
        return True
    return False


def _fresh_session(root: "SparkSession") -> "SparkSession":
    """Return a session without the views, settings and cached tables of earlier requests."""
    root.catalog.clearCache()
    return root.newSession()


if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site"]
    main(json.loads(sys.argv[1]))
