"""The convert step with converters: records in their types as a file, which converters go through.

Source: clauses CONV-1 and CONV-2 in ``spec/conversion.md``.
"""

from typing import Any

from odf_engines.contract import IngestRequest
from odf_engines.ingest.converted import convert_rows
from odf_engines.ingest.quarantined_rows import BadRows
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.read_options import parse_times
from odf_engines.ingest.result import Folders
from odf_engines.records.source_records import ERRORS, RECORD
from odf_engines.spark.ingest.convert import convert_records
from odf_engines.spark.ingest.handover import Handover
from odf_engines.spark.ingest.refused_rows import iter_unconverted
from odf_engines.stage_figures import IngestStage


def convert_read(
    spark: Any, request: IngestRequest, folders: Folders, result: ReadResult, handover: Handover
) -> tuple[ReadResult, list[BadRows]]:
    """Let the records that were read go through the converters of a request.

    Returns:
        The records as if they had been read so, and those that are bad.

    Raises:
        InvalidSourceError: A converter cannot be applied to these columns.
    """
    path, bad = result.records.path, []
    if not result.records.is_typed:
        with folders.clock.measuring(IngestStage.READ):
            times = parse_times(request.read)
            typed = handover.keep(convert_records(spark, result.records, result.target, times), "typed")
            bad.append(iter_unconverted(typed, handover))
            folder = folders.scratch / "to-convert"
            # In one file and in the order of the source, as converters are to see them.
            good = typed.where(f"{ERRORS} IS NULL").drop(ERRORS)
            good.coalesce(1).sortWithinPartitions(RECORD).write.parquet(str(folder))
        (path,) = folder.glob("part-*.parquet")
    converted = convert_rows(request, folders, path, result)
    return converted.result, [*bad, converted.iter_bad()]
