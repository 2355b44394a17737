"""What an ingest did: of one batch, or of all that a poll took; and, for who rehearses it, rows behind each stage.

The engines that run the stages take such rows as they go by, so nothing is read or computed for them once more.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from odf_engines.contract import IngestResponse, QuarantineReason
from odf_engines.stage_metrics import MAX_SAMPLE_ROWS, SampledStage, StageMetrics, merge_stages
from odf_node.datasets import row_files
from odf_node.records.datasets import DatasetRecord
from odf_node.row_counts import RowCounts
from odf_node.wording import count_of
from odf_protocol.errors import OdfError
from odf_protocol.timestamp import Timestamp


class ReportedStage(StrEnum):
    """Behind which stage rows stand, in the order of the pipeline."""

    READ = "read"
    CONVERTED = "converted"
    QUERIED = "queried"
    WRITTEN = "written"
    REJECTED = "refused"


@dataclass(frozen=True, slots=True)
class StageSample:
    """The first rows behind a stage.

    Attributes:
        stage: The stage.
        rows: Of each its columns, as JSON has them; of a rejected one its record, line, what was sent, and the errors.
    """

    stage: ReportedStage
    rows: tuple[dict[str, Any], ...]


def sample_stages(response: IngestResponse) -> tuple[StageSample, ...]:
    """Show rows behind each stage that there is, as they would be written, and those that would be rejected."""
    files = row_files
    reported = ((ReportedStage(stage.value), response.samples.get(stage)) for stage in SampledStage)
    samples = [
        StageSample(stage, files.plain_rows(table.to_batches())) for stage, table in reported if table is not None
    ]
    if response.data_path is not None:
        samples.append(StageSample(ReportedStage.WRITTEN, files.read_first(response.data_path, MAX_SAMPLE_ROWS)))
    if response.quarantine_path is not None:
        names = ("record", "line", "original", "errors")
        samples.append(
            StageSample(ReportedStage.REJECTED, files.read_first(response.quarantine_path, MAX_SAMPLE_ROWS, names))
        )
    return tuple(samples)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did.

    Attributes:
        record: The dataset afterwards.
        up_to_date: The source had nothing new, or nothing that changes anything.
        new_rows: Rows of the new slices.
        counts: What became of the rows (ING-46).
        quarantine_reasons: The commonest reasons.
        warnings: What validators said of rows that were added, the commonest.
        new_blocks: Blocks added.
        seconds: Inside the engine.
        batches: Files or pieces that were taken, each in a commit of its own.
        has_more: The source has another piece.
        failure: What stopped the poll after batches that were taken.
        stages: What took how long, with how many rows (STAGE-1).
        is_rehearsal: Nothing was kept; the numbers say what would have been (ING-25).
        samples: Then, rows behind each stage.
        is_repeated: Nothing was done; this was answered under the same key before (FEED-2).
        waiting: Further pieces of the source that were seen, for the next one's fetch.
    """

    record: DatasetRecord
    up_to_date: bool
    new_rows: int = 0
    counts: RowCounts = field(default_factory=RowCounts)
    quarantine_reasons: tuple[QuarantineReason, ...] = ()
    warnings: tuple[QuarantineReason, ...] = ()
    new_blocks: int = 0
    seconds: float = 0.0
    batches: int = 1
    has_more: bool = False
    failure: OdfError | None = None
    is_rehearsal: bool = False
    stages: tuple[StageMetrics, ...] = ()
    samples: tuple[StageSample, ...] = ()
    is_repeated: bool = False
    waiting: tuple[str, ...] = ()

    def plus(self, later: "IngestReport") -> "IngestReport":
        """Make one report of this one and that of the next batch."""
        return replace(
            later,
            up_to_date=self.up_to_date and later.up_to_date,
            new_rows=self.new_rows + later.new_rows,
            counts=self.counts.plus(later.counts),
            quarantine_reasons=self.quarantine_reasons or later.quarantine_reasons,
            warnings=self.warnings or later.warnings,
            new_blocks=self.new_blocks + later.new_blocks,
            seconds=self.seconds + later.seconds,
            batches=self.batches + later.batches,
            stages=merge_stages((*self.stages, *later.stages)),
        )


def describe_reasons(reasons: tuple[QuarantineReason, ...]) -> str:
    """Say in a line what is wrong, the commonest first."""
    return "; ".join(map(_describe, reasons))


def _describe(reason: QuarantineReason) -> str:
    column = f"{reason.column}: " if reason.column else ""
    value = f" {reason.value!r}" if reason.value is not None else ""
    place = f" in line {reason.line}" if reason.line is not None else ""
    sample = f" (first{value}{place})" if value or place else ""
    return f"{count_of(reason.rows, 'row')}: {column}{reason.reason}{sample}"


def rehearse(
    record: DatasetRecord,
    watermark: Timestamp | None,
    response: IngestResponse,
    counts: RowCounts,
    samples: tuple[StageSample, ...],
) -> IngestReport:
    """Say what a batch would add, and throw its files away.

    Args:
        record: The dataset, which stays as it is.
        watermark: That is in force.
        response: What the engine made of the batch.
        counts: What became of its rows.
        samples: Rows behind each stage.
    """
    for path in (response.data_path, response.state_path, response.quarantine_path):
        if path is not None:
            path.unlink(missing_ok=True)
    interval = response.offset_interval
    rows = interval.row_count if interval is not None else 0
    return IngestReport(
        record,
        up_to_date=not rows and response.watermark == watermark,
        new_rows=rows,
        counts=counts,
        quarantine_reasons=response.quarantine_reasons,
        warnings=response.warnings,
        seconds=response.statistics.seconds,
        is_rehearsal=True,
        samples=samples,
    )
