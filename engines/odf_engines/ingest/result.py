"""What an ingest leaves: the slice, the state, the quarantine, first rows behind stages, the answer that names them.

Source: ODF "Ingest"; spec/ingest.md ING-5, ING-13, ING-25.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest, QuarantineReason
from odf_engines.host.arrow_texts import schema_text
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.quarantine import QuarantineWriter
from odf_engines.ingest.slice_writer import WrittenSlice, check_compatible, slice_schema_of
from odf_engines.records.carriers import from_carrier, to_carrier
from odf_engines.records.source_records import value_name
from odf_engines.stage_metrics import MAX_SAMPLE_ROWS, SampledStage, StageClock, sample_name
from odf_engines.strategies.registry import strategy_of


@dataclass(frozen=True, slots=True)
class Folders:
    """Where an ingest works.

    Attributes:
        scratch: Empty folder for intermediate files; the caller deletes it.
        output: Folder for the files of the response.
        clock: Measures the stages.
    """

    scratch: Path
    output: Path
    clock: StageClock = field(default_factory=StageClock)


@dataclass(frozen=True, slots=True)
class Ingested:
    """What was written.

    Attributes:
        schema: Of the slice.
        slice: What is in it.
        data_path: The slice; there only with rows.
        state_path: The projected state, None where the strategy keeps none.
        quarantine_path: Rows that were not taken; there only with rows.
        quarantine: What is in it.
        record_count: Records of the source.
        warnings: What validators said of rows that were taken.
        batch_faults: What they said of the batch as a whole.
        left_out: Records that a converter of this request left out (CONV-7).
        kept: Current rows that were not retracted although the batch lacks them (ING-48).
        ignored: How many records have a field that no column names (ING-49).
    """

    schema: pa.Schema
    slice: WrittenSlice
    data_path: Path
    state_path: Path | None
    quarantine_path: Path
    quarantine: QuarantineWriter
    record_count: int
    warnings: tuple[QuarantineReason, ...] = ()
    batch_faults: tuple[str, ...] = ()
    left_out: int = 0
    kept: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)


def slice_schema(request: IngestRequest, columns: Columns, known: pa.Schema | None) -> pa.Schema:
    """Return the columns of the slice; those that the dataset has, where it has any.

    Raises:
        InvalidColumnsError: The rows do not fit them.
    """
    passes_op = strategy_of(request.merge).needs_operation and columns.op is not None
    op_is_nullable = passes_op and columns.schema.field(columns.op).nullable
    found = slice_schema_of(columns, request.vocabulary, op_is_nullable=op_is_nullable)
    return found if known is None else check_compatible(found, known)


def name_samples(folders: Folders) -> dict[str, object]:
    """Name the first rows behind stages that were written (ING-25), for the answer."""
    return {
        f"sample_{stage.value}": sample_name(stage)
        for stage in SampledStage
        if (folders.output / sample_name(stage)).exists()
    }


def answer_of(request: IngestRequest, ingested: Ingested, stages: StageClock) -> dict[str, object]:
    """Return the answer to a request, as plain values."""
    count = ingested.slice.row_count
    times = [time for time in (request.prev_watermark, ingested.slice.newest_event_time) if time is not None]
    watermark = max(times, default=None)
    return {
        "schema": schema_text(ingested.schema),
        "data": ingested.data_path.name if count else None,
        "start": request.next_offset if count else None,
        "end": request.next_offset + count - 1 if count else None,
        "watermark_ms": None if watermark is None else watermark.unix_ms,
        "state": None if ingested.state_path is None else ingested.state_path.name,
        "quarantine": ingested.quarantine_path.name if ingested.quarantine.rows else None,
        "quarantined_rows": ingested.quarantine.rows,
        "quarantine_reasons": [asdict(each) for each in ingested.quarantine.reasons],
        "quarantine_codes": [[code, rows] for code, rows in ingested.quarantine.codes.items()],
        "warnings": [asdict(each) for each in ingested.warnings],
        "batch_faults": list(ingested.batch_faults),
        "rows_in": ingested.record_count,
        "stages": stages.to_answer(),
        "kept": ingested.kept,
        "ignored": [[name, rows] for name, rows in ingested.ignored.items()],
        "left_out": ingested.left_out + (0 if request.prepared is None else request.prepared.left_out),
    }


def write_sample_of_file(
    request: IngestRequest, folders: Folders, stage: SampledStage, path: Path, schema: pa.Schema
) -> None:
    """Write the first rows of a file of typed records down, where the request asks for samples."""
    if not request.has_samples:
        return
    with pq.ParquetFile(path) as file:
        names = [value_name(index) for index in range(len(schema))]
        first = next(file.iter_batches(batch_size=MAX_SAMPLE_ROWS, columns=names), None)
    write_sample(request, folders, stage, first, schema)


def write_sample(
    request: IngestRequest,
    folders: Folders,
    stage: SampledStage,
    rows: "pa.RecordBatch | pa.Table | None",
    schema: pa.Schema,
) -> None:
    """Write the first rows behind a stage down, once, where the request asks for samples.

    Args:
        request: Of the ingest.
        folders: Where.
        stage: The stage.
        rows: In carrier types, columns by position; None: there are none.
        schema: Names and types of the columns.
    """
    path = folders.output / sample_name(stage)
    if not request.has_samples or path.exists():
        return
    table = schema.empty_table()
    if rows is not None and rows.num_rows:
        first = rows.slice(0, MAX_SAMPLE_ROWS)
        whole = pa.Table.from_batches([first]) if isinstance(first, pa.RecordBatch) else first
        columns = [whole.column(value_name(index)).combine_chunks() for index in range(len(schema))]
        kinds = [field.type for field in schema]
        plain = [from_carrier(to_carrier(each, kind), kind) for each, kind in zip(columns, kinds, strict=True)]
        table = pa.table(plain, schema=schema)
    pq.write_table(table, path)
