"""What the program inside the sandbox does while Java starts and then: answers requests.

How to add an operation: write a function in a module inside ``odf_spark``

    def run(spark: SparkSession, request: SomeRequest, folder: Path) -> dict[str, object]

and name it in ``OPERATIONS``. It gets a fresh Spark session, and the rest as ``host.worker`` says. It raises the errors
of ``odf_engines.errors`` for what is the query's or the source's fault; anything else is reported as a failure of the
engine. The module is imported at the first request for it. What it prints goes to the log.

The sandbox has Python's standard library, pyspark, py4j, msgspec, numpy, pyarrow, ``odf_protocol`` and ``odf_engines``,
nothing else.

Source: clauses ENGINE-3 to ENGINE-6 in ``spec/extensions/engine-contract.md``.
"""

import importlib
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odf_engines.confined.service import Service
from odf_engines.errors import (
    ClusterUnavailableError,
    EngineError,
    EngineFailureError,
    InvalidQueryError,
    LimitExceededError,
)
from odf_engines.host.messages import error_to_fields
from odf_engines.host.worker import answer_request, output_folder
from odf_spark.cluster import connect_cluster
from odf_spark.connection import connect_spark
from odf_spark.gate.statement import TOO_DEEP
from odf_spark.java_side import is_java_reachable

OPERATIONS = {
    "check": "odf_spark.check.run",
    "ingest": "odf_spark.ingest.pipeline.run",
    "preprocess": "odf_spark.preprocess.run",
    "query": "odf_spark.query.run",
    "transform": "odf_spark.transform.run",
}

# What a transform imports in the end, imported while Java starts; a name that is missing costs time in a first request.
_PRELOADED = (
    "encodings.idna", "ssl",  # by py4j when it connects
    "numpy.ma", "pyarrow.compute", "pyarrow.parquet",
    "pyspark.sql.classic.column", "pyspark.sql.classic.dataframe", "pyspark.sql.pandas.map_ops",
    "odf_spark.transform",
)  # fmt: skip

_OUT_OF_MEMORY = 3  # exit code of Java under -XX:+ExitOnOutOfMemoryError
# How Spark says that memory is not enough for a sort or a join, or a row not for one buffer of Java (2 GiB).
_SHORTAGES = ("UNABLE_TO_ACQUIRE_MEMORY", "OutOfMemoryError", "Cannot grow BufferHolder")
# Conditions of Spark that are about values, cardinality, or what a query says (SQL:2016, classes of SQLSTATE).
_OF_THE_QUERY = re.compile(r"SQLSTATE: (?:21|22|42)")
_DEEPEST_CAUSE = 20  # guess: Java's chains of causes are five long
_END_GRACE_S = 30.0  # guess: Java that loses its last thread is gone in milliseconds; a busy machine takes its time


def serve(java: "subprocess.Popen[bytes]", arguments: dict[str, Any]) -> None:
    """Answer until the input ends; ``arguments`` are those of ``worker.main``."""
    memory_bytes = arguments["memory_bytes"]
    service = Service()
    for name in _PRELOADED:
        importlib.import_module(name)
    if arguments.get("settings"):
        try:
            root = connect_cluster(java, arguments, output_folder())
        except ClusterUnavailableError as unavailable:
            service.send({"error": error_to_fields(unavailable)})
            return
    else:
        root = connect_spark(java)
    service.report_ready()
    for request in service.iter_requests():
        answer = answer_request(request, lambda *asked: _run(root, *asked), lambda error: _explain(error, memory_bytes))
        if "error" in answer and _has_ended(java):
            # Without Java there is nothing left to ask; the host starts another worker.
            if java.returncode == _OUT_OF_MEMORY:
                error = LimitExceededError("memory_bytes", allowed=memory_bytes)
                answer["error"] = error_to_fields(error)
            elif java.returncode == -signal.SIGXCPU:
                allowed = arguments["limits"]["RLIMIT_CPU"]
                answer["error"] = error_to_fields(LimitExceededError("cpu_s", allowed=allowed))
            service.send({**answer, "is_last": True})
            return
        service.send(answer)
    if java.stdin is not None:
        java.stdin.close()
    java.wait()


def _run(root: SparkSession, operation: str, request: Any, folder: Path) -> dict[str, object]:
    module, _, function = OPERATIONS[operation].rpartition(".")
    run = getattr(importlib.import_module(module), function)
    result: dict[str, object] = run(_fresh_session(root), request, folder)
    return result


def _explain(error: Exception, memory_bytes: int) -> EngineError:
    """Say whose fault a failure is; Spark reports its own shortage of memory as a failure of the query."""
    try:
        cause = _cause_of_failed_job(error)
        reported = str(error) if cause is None else cause
        if isinstance(error, MemoryError) or any(mark in reported for mark in _SHORTAGES):
            return LimitExceededError("memory_bytes", allowed=memory_bytes)
        if isinstance(error, EngineError):
            return error
        if cause is not None:
            return InvalidQueryError(cause)
        text = f"{type(error).__name__}: {reported}".split("\nJVM stacktrace")[0]
        if isinstance(error, RecursionError) or "java.lang.StackOverflowError" in text:
            return InvalidQueryError(TOO_DEEP)
        return EngineFailureError(text[:2000])
    except Exception:  # noqa: BLE001 - Java, which knows what went wrong, ended while it was asked
        return EngineFailureError(f"{type(error).__name__}, and Java ended")


def _cause_of_failed_job(error: Exception) -> str | None:
    """Return what first went wrong where a query failed on its rows, None if something else did (ENGINE-8)."""
    if not isinstance(error, Py4JJavaError):
        return None
    each, is_job, reported = error.java_exception, False, ""
    for _ in range(_DEEPEST_CAUSE):
        reported = str(each.toString())[:2000]
        is_job = is_job or "Job aborted due to stage failure" in reported or _OF_THE_QUERY.search(reported) is not None
        if (cause := each.getCause()) is None:
            break
        each = cause
    return reported.split("\nDriver stacktrace")[0] if is_job else None


def _has_ended(java: "subprocess.Popen[bytes]") -> bool:
    """Whether Java is gone; asked after a failure, when it may be about to go."""
    try:
        java.wait(timeout=0 if is_java_reachable() else _END_GRACE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _fresh_session(root: SparkSession) -> SparkSession:
    """Return a session without the views, settings and cached tables of earlier requests."""
    root.catalog.clearCache()
    return root.newSession()
