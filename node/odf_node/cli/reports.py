"""Reports of pulls, ingests and transforms, as a line for people or JSON for scripts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from odf_node.acceptance.offers import AcceptanceReport, FileCount
from odf_node.acceptance.unchecked import FILES
from odf_node.cli.console import Console
from odf_node.datasets.ingest_metrics import stages_to_json
from odf_node.derive.step_measurements import TransformReport
from odf_node.ingest.batch import BatchRejectedError
from odf_node.ingest.report import IngestReport, ReportedStage, StageSample, describe_reasons
from odf_node.wording import count_of

Report = IngestReport | TransformReport | AcceptanceReport


@dataclass(slots=True)
class ReportLog:
    """Reports of one command: lines as they come, or one JSON array at the end, which failures do not swallow."""

    console: Console
    output_format: str
    _reports: list[Report] = field(default_factory=list)

    def add(self, report: Report) -> None:
        """Tell, or keep for the end, what was done."""
        self._reports.append(report)
        if self.output_format == "text":
            for line in describe_report(report):
                self.console.line(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self.output_format == "text":
            for line in iter_rejection_lines(error):
                self.console.line(line)
        # What was done before a failure stays done, so it is reported.
        if self.output_format == "json" and (self._reports or error is None):
            self.console.json([report_to_json(report) for report in self._reports])


def describe_report(report: Report) -> list[str]:
    """Say in a line or a few what a report says."""
    match report:
        case IngestReport():
            lines = _describe_ingest(report)
        case TransformReport():
            lines = [_done_or_up_to_date(report, "derived")]
            if report.late_rows:
                lines.append(f"{count_of(report.late_rows, 'row')} of its inputs came too late for what is closed")
            if report.waits_for:
                names = ", ".join(report.waits_for)
                lines.append(f"it waits for a watermark of {names}: none was stated, so no row can be given so far")
            lines += [f"{each.describe()}: {each.command}" for each in report.holds]
        case AcceptanceReport():
            lines = _describe_acceptance(report)
    return [
        *(iter_sample_lines(report.record.name, report.samples) if isinstance(report, IngestReport) else ()),
        *(f"{report.record.name}: {line}" for line in lines),
    ]


def _describe_ingest(report: IngestReport) -> list[str]:
    lines = []
    if report.is_repeated:
        lines.append("sent before under this key, nothing was done; the answer then:")
    lines.append(_describe_rows(report))
    if report.batches > 1:
        lines.append(f"from {count_of(report.batches, 'file')}, a commit each")
    if report.has_more and report.failure is None:
        lines.append(f"more waits{'' if report.is_rehearsal else '; pull again'}")
    if report.counts.quarantined:
        why = describe_reasons(report.quarantine_reasons)
        kept = "would be kept aside" if report.is_rehearsal else "kept aside"
        shown = "" if report.is_rehearsal else f"; 'odf-node quarantine show {report.record.name}' shows them"
        rows = count_of(report.counts.quarantined, "row")
        lines.append(f"{rows} could not be taken: {kept}{f' ({why})' if why else ''}{shown}")
    if report.counts.kept:
        verb = "would not be" if report.is_rehearsal else "not"
        rows = count_of(report.counts.kept, "current row")
        lines.append(f"{verb} retracted: {rows} that rows in quarantine may stand for")
    if report.counts.ignored:
        lines.append(f"in no column: {report.counts.describe_ignored()}; the read step's schema names columns")
    if report.counts.unread:
        lines.append(f"not read: {report.counts.describe_unread()} of the archive; subPath names the file that is read")
    if report.counts.left_out:
        lines.append(f"{count_of(report.counts.left_out, 'row')} left out by its converters")
    if report.warnings:
        lines.append(f"taken with a warning: {describe_reasons(report.warnings)}")
    return lines


def _describe_rows(report: IngestReport) -> str:
    counts, head = report.counts, report.record.head
    if report.up_to_date:
        return f"{_UP_TO_DATE} ({counts.describe()})" if counts.unchanged else _UP_TO_DATE
    if report.is_rehearsal:
        return counts.describe(would=True)
    return f"{counts.describe()}, block {head.sequence_number} ({head.hash.short})"


def _describe_acceptance(report: AcceptanceReport) -> list[str]:
    lines = []
    if report.completed_blocks:
        lines.append(_describe_completed(report) + ("" if report.new_blocks else f"; {report.decision.reason}"))
    if report.new_blocks:
        lines.append(f"{_describe_new(report)}; {report.decision.reason}")
    if not lines:
        lines.append(_UP_TO_DATE)
    if report.replayed_steps:
        lines.append(f"{count_of(report.replayed_steps, 'step')} re-executed here with an equal result")
    if report.first_contact:
        known = "must be signed by the key of" if report.record.pinned_key else "stands for"
        lines.append(f"first contact; from now on this name {known} {report.record.id}")
    if report.unchecked:
        lines.append(_describe_unchecked(report))
    return [*lines, *(f"note: {warning}" for warning in report.warnings[:_SHOWN_WARNINGS])]


def report_to_json(report: Report) -> dict[str, Any]:
    """Give a report as plain values."""
    record = report.record
    common = {
        "dataset": record.name,
        "id": str(record.id),
        "head": str(record.head.hash),
        "newBlocks": report.new_blocks,
        "newRows": report.new_rows,
    }
    match report:
        case IngestReport():
            return common | {
                "upToDate": report.up_to_date,
                **report.counts.to_json(),
                "batches": report.batches,
                "hasMore": report.has_more,
                "dryRun": report.is_rehearsal,
                "repeated": report.is_repeated,
                "stages": stages_to_json(report.stages),
                **({"samples": samples_to_json(report.samples)} if report.is_rehearsal else {}),
            }
        case TransformReport():
            return common | {
                "upToDate": report.up_to_date,
                "readRows": report.read_rows,
                "lateRows": report.late_rows,
                "waitsFor": list(report.waits_for),
                "holds": [{"input": each.name, "upto": each.upto, "reason": each.reason} for each in report.holds],
                "seconds": round(report.seconds, 3),
            }
        case AcceptanceReport():
            return common | {
                "upToDate": not report.new_blocks and not report.completed_blocks,
                "portion": report.subset.value,
                "newFiles": _count_to_json(report.new_files),
                "completedBlocks": report.completed_blocks,
                "completedRows": report.completed_rows,
                "completedFiles": _count_to_json(report.completed_files),
                "notChecked": list(report.unchecked),
                "trust": record.trust.in_words(report.decision.partial),
                "partial": report.decision.partial or None,
                "reason": report.decision.reason,
                "replayedSteps": report.replayed_steps,
                "firstContact": report.first_contact,
                "warnings": list(report.warnings),
            }


def _describe_new(report: AcceptanceReport) -> str:
    count, blocks, rows = report.new_files, count_of(report.new_blocks, "new block"), count_of(report.new_rows, "row")
    here = count.files - count.fetched_files if report.subset.has_files else 0
    files = f"{count_of(count.files, 'file')} ({count.size_bytes:,} bytes{f', {here:,} here already' if here else ''})"
    if report.subset.has_rows:
        return f"accepted {blocks} with {rows}" + (f" in {files}" if count.files else "")
    if not count.files:
        return f"took {blocks}, which name no files"
    if report.subset.has_files:
        return f"took {blocks} and {files}, said to have {rows}"
    return f"took {blocks} without the {files} that they name, said to have {rows}"


def _describe_completed(report: AcceptanceReport) -> str:
    count, blocks = report.completed_files, count_of(report.completed_blocks, "block")
    fetched = f"fetched {count_of(count.fetched_files, 'file')} ({count.fetched_bytes:,} bytes)"
    if not report.subset.has_rows:
        return f"{fetched} of {blocks} taken without" if count.fetched_files else f"all files of {blocks} are here"
    checked = f"checked {count_of(report.completed_rows, 'row')} of {blocks} taken unchecked"
    return f"{fetched} and {checked}" if count.fetched_files else checked


def _describe_unchecked(report: AcceptanceReport) -> str:
    taken = f"taken unchecked: {', '.join(report.unchecked)}; 'odf-node pull {report.record.name}'"
    if FILES in report.unchecked:
        return f"{taken} brings and checks them, with --rows-later it brings the files alone"
    return f"{taken} checks them now, whatever reads rows here checks them before"


def _count_to_json(count: FileCount) -> dict[str, int]:
    return {
        "files": count.files,
        "bytes": count.size_bytes,
        "fetchedFiles": count.fetched_files,
        "fetchedBytes": count.fetched_bytes,
    }


def _done_or_up_to_date(report: IngestReport | TransformReport, what: str) -> str:
    if report.up_to_date:
        return _UP_TO_DATE
    head = report.record.head
    return f"{count_of(report.new_rows, 'row')} {what}, block {head.sequence_number} ({head.hash.short})"


_UP_TO_DATE: Final = "up to date"
_SHOWN_WARNINGS: Final = 5
_SHOWN_CHARACTERS: Final = 400  # guess: of a row, a few lines of a terminal
_HEADINGS: Final = {
    ReportedStage.READ: "as read",
    ReportedStage.CONVERTED: "behind the converters",
    ReportedStage.QUERIED: "behind the preprocess query",
    ReportedStage.WRITTEN: "as they would be written",
    ReportedStage.REJECTED: "that would be rejected",
}


def iter_sample_lines(name: str, samples: Sequence[StageSample]) -> Iterator[str]:
    """Show samples, each row as JSON in a line; of a rejected one its place, what is wrong, and what was sent."""
    for sample in samples:
        yield f"{name}: first rows {_HEADINGS[sample.stage]}:{'' if sample.rows else ' none'}"
        for row in sample.rows:
            text = (
                _describe_rejected(row)
                if sample.stage is ReportedStage.REJECTED
                else json.dumps(row, ensure_ascii=False)
            )
            yield f"  {text if len(text) <= _SHOWN_CHARACTERS else f'{text[:_SHOWN_CHARACTERS]}…'}"


def iter_rejection_lines(error: BaseException | None) -> Iterator[str]:
    """Show the samples of a rehearsed batch that would be rejected as a whole; nothing of any other failure."""
    if isinstance(error, BatchRejectedError):
        yield from iter_sample_lines(error.dataset, error.samples)


def samples_to_json(samples: Sequence[StageSample]) -> list[dict[str, Any]]:
    """Give samples as plain values."""
    return [{"stage": each.stage.value, "rows": list(each.rows)} for each in samples]


def _describe_rejected(row: dict[str, Any]) -> str:
    place = f"line {row['line']}: " if row["line"] is not None else ""
    errors = "; ".join(f"{each['column'] or 'row'}: {each['message']}" for each in row["errors"])
    return f"{place}{errors}; as sent: {row['original'] if row['original'] is not None else '(no UTF-8)'}"
