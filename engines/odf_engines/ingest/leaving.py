"""The last steps of an ingest: what a merge gave is written as slice and state, and what it left out as quarantine.

Source: ODF "Ingest"; spec/ingest.md ING-5, ING-6, ING-12, ING-13.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from odf_engines.contract import IngestRequest
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.merged import Merged
from odf_engines.ingest.quarantine import write_quarantine
from odf_engines.ingest.quarantined_rows import BadRows
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.result import Folders, Ingested
from odf_engines.ingest.slice_writer import WrittenSlice, write_slice
from odf_engines.ingest.state import write_state
from odf_engines.ingest.validated import Validated
from odf_engines.stage_metrics import IngestStage, StageSums


@dataclass(frozen=True, slots=True)
class Changes:
    """What a merge changed, written.

    Attributes:
        schema: Of the slice.
        slice: What is in it.
        data_path: The slice; there only with rows.
        state_path: The new state, None where the strategy keeps none.
        kept: Current rows that were not retracted although the batch lacks them (ING-48).
    """

    schema: pa.Schema
    slice: WrittenSlice
    data_path: Path
    state_path: Path | None
    kept: int = 0


def write_changes(
    request: IngestRequest, folders: Folders, merged: Merged, columns: Columns, schema: pa.Schema, sums: StageSums
) -> Changes:
    """Write the slice, in the order of offsets, and then the state; rows are counted in ``sums``.

    Raises:
        InvalidColumnsError: A value does not fit the schema.
    """
    data_path, state_path = folders.output / "data.parquet", folders.output / "state.parquet"
    written = write_slice(
        merged.changes,
        data_path,
        columns,
        schema,
        system_time=request.system_time,
        fallback_event_time=request.fallback_event_time,
        next_offset=request.next_offset,
    )
    sums.count(rows_out=written.row_count)
    if merged.state is None:
        return Changes(schema, written, data_path, None)
    kept = merged.count_kept()
    write_state(
        merged.state,
        state_path,
        request.merge,
        columns,
        fallback_event_time=request.fallback_event_time,
        next_offset=request.next_offset + written.row_count,
    )
    return Changes(schema, written, data_path, state_path, kept)


def leave(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    changes: Changes,
    bad: Sequence[BadRows],
    validated: Validated | None,
) -> Ingested:
    """Write all rows that were not taken, those of ``bad``, and say what the whole ingest leaves."""
    quarantine_path = folders.output / "quarantine.parquet"
    with folders.clock.measuring(IngestStage.QUARANTINE) as stage:
        quarantine = write_quarantine(quarantine_path, request, result.records, bad)
    stage.count(rows_in=quarantine.rows, rows_out=quarantine.rows)
    return Ingested(
        changes.schema,
        changes.slice,
        changes.data_path,
        changes.state_path,
        quarantine_path,
        quarantine,
        result.records.record_count,
        warnings=() if validated is None else validated.warnings,
        batch_faults=() if validated is None else validated.rows.batch_faults,
        left_out=result.left_out,
        kept=changes.kept,
        ignored=result.records.ignored,
    )
