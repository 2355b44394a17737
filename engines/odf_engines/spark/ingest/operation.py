"""The operations `ingest` and `convert` of the worker."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odf_engines.contract import IngestRequest
from odf_engines.ingest.result import Folders, answer_of, name_samples
from odf_engines.spark.ingest.pipeline import convert, ingest
from odf_engines.spark.java_side import java_class, java_session


def run(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Ingest one file; see `worker` for what goes in and out."""
    return _run(spark, folder, lambda folders: answer_of(request, ingest(spark, request, folders), folders.clock))


def run_conversion(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Convert one file; see `worker` for what goes in and out."""
    return _run(spark, folder, lambda folders: convert(spark, request, folders))


def _run(spark: Any, folder: Path, work: Callable[[Folders], dict[str, object]]) -> dict[str, object]:
    scratch = folder / "work"
    scratch.mkdir()
    # A parser that is asked directly looks for settings in the session of its thread.
    sessions = java_class("org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(java_session(spark))
    try:
        folders = Folders(scratch, folder)
        return {**work(folders), **name_samples(folders)}
    finally:
        sessions.clearActiveSession()
        shutil.rmtree(scratch, ignore_errors=True)
