"""Converters between reading and everything else: what they make of rows goes on, what failed to quarantine.

Where another engine runs the query of an ingest, converted rows go to it with the names and types of the read step.

Source: clauses CONV-1, CONV-2 and CONV-4 in ``spec/conversion.md``; spec/ingest.md ING-7.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.conversion.converted_rows import ConvertedRows, convert
from odf_engines.conversion.stages import FailedSelectionError
from odf_engines.errors import InvalidSourceError, LimitExceededError
from odf_engines.ingest.quarantine import write_quarantine
from odf_engines.ingest.quarantined_rows import BadRows, QuarantinedRow, iter_batches, list_unread
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.result import Folders, write_sample_of_file
from odf_engines.records.carriers import from_carrier, to_carrier
from odf_engines.records.source_records import RECORD, ROW_GROUP_ROWS, value_name
from odf_engines.stage_metrics import IngestStage, SampledStage
from odf_engines.validation.contract import ParameterError
from odf_engines.validation.plug_ins import BrokenPlugInError
from odf_engines.validation.running_name import CONVERTER, RunningName
from odf_engines.validation.validated_rows import RowFile

STAGE = "convert"


@dataclass(frozen=True, slots=True)
class ConvertedRecords:
    """Records that went through the converters of a request.

    Attributes:
        result: As if they had been read so.
        rows: What the converters made.
    """

    result: ReadResult
    rows: ConvertedRows

    def iter_bad(self) -> BadRows:
        """Give the records that failed, by number."""
        return iter_batches(QuarantinedRow(number, STAGE, errors) for number, errors in self.rows.iter_bad())


def convert_rows(request: IngestRequest, folders: Folders, path: Path, result: ReadResult) -> ConvertedRecords:
    """Let records go through the converters of a request.

    Args:
        request: It has converters.
        folders: Where.
        path: Of the records, a file in the types of ``result``.
        result: What was read.

    Raises:
        InvalidSourceError: A converter cannot be applied to these columns, or failed on the batch as a whole.
        LimitExceededError: One used up the memory.
    """
    write_sample_of_file(request, folders, SampledStage.READ, path, result.target)
    running = RunningName(folders.output)
    try:
        with folders.clock.measuring(IngestStage.CONVERT) as stage:
            rows = convert(
                RowFile(path, RECORD, result.target),
                request.converters,
                folders.scratch,
                watch=lambda name: running.tell(name and f"{CONVERTER} {name}"),
                clock=folders.clock,
            )
        stage.count(rows_in=rows.row_count, rows_out=rows.row_count - rows.bad_count - rows.left_out)
        stage.count(bad_rows=rows.bad_count)
    except (ParameterError, BrokenPlugInError, FailedSelectionError) as error:
        name = "" if isinstance(error, BrokenPlugInError | FailedSelectionError) else f"{running.name}: "
        raise InvalidSourceError(request.source_name, f"{name}{error}") from error
    except MemoryError as error:
        raise LimitExceededError("memory_bytes", allowed=request.limits.memory_bytes, where=running.name) from error
    write_sample_of_file(request, folders, SampledStage.CONVERTED, rows.path, rows.schema)
    names = tuple(rows.schema.names)
    records = replace(result.records, path=rows.path, names=names, failed=rows.failed)
    return ConvertedRecords(ReadResult(records, rows.schema, rows.left_out), rows)


def write_converted(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    batches: Iterable[pa.RecordBatch],
    bad: list[BadRows],
) -> dict[str, object]:
    """Write converted rows for a query, and the records that are none of them.

    Args:
        request: Of the ingest.
        folders: Where.
        result: What was read.
        batches: Good rows in the order of the source, in carrier types, columns by position.
        bad: Records that could not be converted.

    Returns:
        The answer, as plain values.
    """
    schema = result.target
    with (
        folders.clock.measuring(IngestStage.PREPROCESS),
        pq.ParquetWriter(folders.output / "rows.parquet", schema, compression="lz4") as writer,
    ):
        for batch in batches:
            columns = [_as_read(batch.column(value_name(i)), field.type) for i, field in enumerate(schema)]
            writer.write_batch(pa.record_batch(columns, schema=schema), ROW_GROUP_ROWS)
    path = folders.output / "quarantine.parquet"
    with folders.clock.measuring(IngestStage.QUARANTINE):
        written = write_quarantine(path, request, result.records, [*list_unread(result.records), *bad])
    return {
        "rows": "rows.parquet",
        "quarantine": path.name if written.rows else None,
        "records": result.records.record_count,
        "left_out": result.left_out,
        "stages": folders.clock.to_answer(),
    }


def _as_read(column: pa.Array, target: pa.DataType) -> pa.Array:
    # Spark gives finer times, and lists with another name for their items.
    return from_carrier(to_carrier(column, target), target)


def iter_converted(records: Path) -> Iterator[pa.RecordBatch]:
    """Give the rows of a file of converted records."""
    with pq.ParquetFile(records) as file:
        yield from file.iter_batches(batch_size=ROW_GROUP_ROWS)
