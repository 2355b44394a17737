"""Ingest on a cluster: everything is as it is here but the merge, which Spark divides among all cores.

Source: ODF "Ingest"; spec/ingest.md; CLUSTER-1 in ``spec/extensions/engine-cluster.md``.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from odf_engines.contract import IngestRequest
from odf_engines.errors import EngineFailureError
from odf_engines.ingest.appending import ingest_source
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.merged import Merged
from odf_engines.ingest.result import Folders, answer_of, name_samples
from odf_engines.ingest.unread_keys import UnreadKeys
from odf_spark.handover import Handover, handover_for
from odf_spark.ingest.merge import keeps_state, merge_rows
from odf_spark.ingest.rejected_rows import iter_rejected
from odf_spark.ingest.staging import load_state, stage_records
from odf_spark.session_settings import set_for_rows


def run(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Ingest one file; see `host.worker` for what goes in and out."""
    scratch = folder / "work"
    scratch.mkdir()
    folders = Folders(scratch, folder)
    inputs = [request.source_path] + ([request.state_path] if request.state_path else [])
    merge = partial(_merge, spark, handover_for(scratch, inputs))
    try:
        with set_for_rows(spark, request.source_path.stat().st_size):
            ingested = ingest_source(request, folders, merge)
        return {**answer_of(request, ingested, folders.clock), **name_samples(folders)}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _merge(
    spark: Any, handover: Handover, request: IngestRequest, records: Path, columns: Columns, unread: UnreadKeys
) -> Merged:
    """Merge a file of converted records.

    Raises:
        EngineFailureError: The state is not the one of this dataset and offset.
    """
    staged, state = stage_records(spark, records, columns), None
    if request.state_path is not None and keeps_state(request.merge):
        state = load_state(spark, request.state_path, request.merge, columns, request.next_offset)
    elif request.next_offset > 0 and keeps_state(request.merge):
        raise EngineFailureError("a dataset that has rows cannot be merged into without its projected state")
    outcome = merge_rows(request.merge, staged, columns, state, request.fallback_event_time, handover, unread)
    refused = [
        iter_rejected(rejection, columns, handover, f"rejected-{number}", are_records=request.prepared is None)
        for number, rejection in enumerate(outcome.refusals)
    ]
    new_state = None if outcome.state is None else handover.iter_batches(outcome.state, "state")
    kept = outcome.kept
    count_kept = int if kept is None else lambda: int(kept.count())
    return Merged(handover.iter_batches(outcome.changes, "changes"), refused, new_state, count_kept)
