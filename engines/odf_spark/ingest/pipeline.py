"""Ingest on a cluster: everything is as it is on one machine, but Spark puts the rows into the order of the merge.

Source: ODF "Ingest"; spec/ingest.md; CLUSTER-1 in ``spec/extensions/engine-cluster.md``.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from odf_engines.contract import IngestRequest
from odf_engines.ingest.appending import ingest_source
from odf_engines.ingest.result import Folders, answer_of, name_samples
from odf_engines.merging.merge import merge_records
from odf_spark.handover import handover_for
from odf_spark.ingest.row_order import SparkOrder
from odf_spark.session_settings import set_for_rows


def run(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Ingest one file; see `host.worker` for what goes in and out."""
    scratch = folder / "work"
    scratch.mkdir()
    folders = Folders(scratch, folder)
    inputs = [request.source_path] + ([request.state_path] if request.state_path else [])
    order = SparkOrder(spark, handover_for(scratch, inputs))
    merge = partial(merge_records, order=order, scratch=scratch)
    try:
        with set_for_rows(spark, request.source_path.stat().st_size):
            ingested = ingest_source(request, folders, merge)
        return {**answer_of(request, ingested, folders.clock), **name_samples(folders)}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
