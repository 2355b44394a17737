"""The operation `ingest` of the worker."""

import shutil
from pathlib import Path
from typing import Any

from odf_engines.contract import IngestRequest
from odf_engines.ingest.result import Folders, answer_of
from odf_engines.spark.ingest.pipeline import ingest
from odf_engines.spark.java_classes import java_class
from odf_engines.spark.plans import java_session


def run(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Ingest one file; see `worker` for what goes in and out."""
    scratch = folder / "work"
    scratch.mkdir()
    # A parser that is asked directly looks for settings in the session of its thread.
    sessions = java_class("org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(java_session(spark))
    try:
        return answer_of(request, ingest(spark, request, Folders(scratch, folder)))
    finally:
        sessions.clearActiveSession()
        shutil.rmtree(scratch, ignore_errors=True)
