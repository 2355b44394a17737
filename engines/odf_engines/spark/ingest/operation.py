"""The operation `ingest` of the worker."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from odf_engines.contract import IngestRequest, IngestResponse
from odf_engines.host.messages import schema_text
from odf_engines.spark.ingest.pipeline import Folders, ingest
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
        return _answer(ingest(spark, request, Folders(scratch, folder)))
    finally:
        sessions.clearActiveSession()
        shutil.rmtree(scratch, ignore_errors=True)


def _answer(response: IngestResponse) -> dict[str, object]:
    interval = response.offset_interval
    return {
        "schema": schema_text(response.schema),
        "data": _name(response.data_path),
        "start": None if interval is None else interval.start,
        "end": None if interval is None else interval.end,
        "watermark_ms": None if response.watermark is None else response.watermark.unix_ms,
        "state": _name(response.state_path),
        "quarantine": _name(response.quarantine_path),
        "quarantined_rows": response.quarantined_rows,
        "quarantine_reasons": [asdict(each) for each in response.quarantine_reasons],
        "rows_in": response.statistics.rows_in,
    }


def _name(path: Path | None) -> str | None:
    return None if path is None else path.name
