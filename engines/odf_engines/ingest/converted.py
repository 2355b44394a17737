"""Converters between reading and everything else: what they make of rows goes on, what failed to quarantine.

Source: clauses CONV-1, CONV-2 and CONV-4 in ``spec/conversion.md``.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from odf_engines.contract import IngestRequest
from odf_engines.conversion.converted_rows import ConvertedRows, convert
from odf_engines.conversion.stages import FailedSelectionError
from odf_engines.errors import InvalidSourceError, LimitExceededError
from odf_engines.ingest.quarantined_rows import BadRows, QuarantinedRow, iter_batches
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.result import Folders
from odf_engines.ingest.samples import write_sample_of_file
from odf_engines.records.source_records import RECORD
from odf_engines.row_samples import SampledStage
from odf_engines.stage_figures import IngestStage
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
    records = replace(result.records, path=rows.path, names=names, is_typed=True)
    return ConvertedRecords(ReadResult(records, rows.schema, rows.left_out), rows)
