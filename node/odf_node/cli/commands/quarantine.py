"""``odf-node quarantine``: look at what was not taken, send it again or give it up; plug-ins add further actions."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from odf_node.cli.actions import has_action
from odf_node.cli.context import CommandContext, report_writing_time
from odf_node.cli.input_files import check_input
from odf_node.cli.parsing import add_actions, add_output_format, whole_number
from odf_node.cli.quarantine_rows import (
    REPORTED_COLUMNS,
    ROW_COLUMN,
    add_code,
    add_ids,
    has_code,
    read_ids,
    select_rows,
)
from odf_node.cli.reports import ReportLog
from odf_node.cli.rows import rows_of_texts, write_rows
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.quarantined_rows import KeptRow, QuarantineReader
from odf_node.errors import UsageError
from odf_node.ingest.resending import Resending
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import QuarantineFile, RowId
from odf_node.wording import count_of

TOPIC: Final = "make and read datasets"
HELP: Final = "show what ingests could not take; fix it, send it again, give it up"
EXAMPLES: Final = """\
quarantine list sales
quarantine show sales
quarantine export sales --output-path rows.ndjson
quarantine resend sales
quarantine drop sales 3.1
"""

_ACTIONS: Final = {
    "list": "list entries: what ingests set aside, and what of it waits",
    "show": "show rows with all their errors, as they were sent",
    "export": "write rows to be edited, each with its id and its errors",
    "resend": "send what waits through the whole pipeline again, exactly once",
    "drop": "give up what waits; it stays to be looked at",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    parser.epilog = "In 'odf-node sql', NAME__quarantine is a table of all rows that were set aside, with their errors."
    for name, child in add_actions(parser, _ACTIONS).items():
        child.add_argument("dataset", metavar="DATASET", help="name or identity")
        if name != "list":
            add_ids(child, is_required=name == "drop")
        _add_options(child, name)


def _add_options(child: argparse.ArgumentParser, name: str) -> None:
    if name not in {"list", "drop"}:
        add_code(child)
    match name:
        case "list":
            add_output_format(child, "table", "json")
        case "show":
            child.add_argument(
                "-n", "--limit", type=whole_number(1), default=20, metavar="N", help="show N rows (default: 20)"
            )
            add_output_format(child, "text", "json")
        case "export":
            add_output_format(child, "csv", "ndjson")
            child.add_argument("--output-path", type=Path, metavar="FILE", help="write there")
        case "resend":
            child.add_argument(
                "--release", action="store_true", help="let a waiting batch pass whatever its limits say"
            )
            child.add_argument("--file", type=Path, metavar="FILE", help="send this in the place of a waiting batch")
            add_output_format(child, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    node = context.node
    record = get_dataset(node.store, arguments.dataset)
    reader = QuarantineReader(node.store, node.objects)
    if arguments.action == "list":
        _list(context, reader, record, as_json=arguments.output_format == "json")
        return 0
    entries, rows = read_ids(arguments.ids)
    reader.require_known(record, entries, rows)
    if arguments.action == "drop":
        _drop(context, reader, record, entries, rows)
        return 0
    if arguments.action == "resend":
        _resend(context, reader, record, arguments, entries, rows)
        return 0
    found = select_rows(reader, record, arguments)
    match arguments.action:
        case "show":
            batches = [
                each
                for each in reader.list_entries(record)
                if each.batch is not None and each.batch.fate is None and (not arguments.ids or each.id in entries)
            ]
            as_json = arguments.output_format == "json"
            _show(context, found, batches, arguments.limit, as_json=as_json)
            _report_next(context, record, found, batches)
        case "export":
            _export(context, found, arguments.output_format, arguments.output_path)
    return 0


def _list(context: CommandContext, reader: QuarantineReader, record: DatasetRecord, *, as_json: bool) -> None:
    entries = [(entry, reader.count_waiting(entry)) for entry in reader.list_entries(record)]
    if as_json:
        context.console.json(
            [
                {
                    "entry": entry.id,
                    "createdAt": str(entry.created_at),
                    "source": entry.source,
                    "pushSource": entry.push_source,
                    "sequenceNumber": entry.sequence_number,
                    "rows": entry.row_count,
                    "waiting": waiting,
                    "batch": None
                    if entry.batch is None
                    else {"why": entry.batch.why, "fate": entry.batch.fate, "waits": entry.batch.fate is None},
                    "resentFrom": [str(each) for each in entry.resent_from],
                }
                for entry, waiting in entries
            ]
        )
        return
    lines = []
    for entry, waiting in entries:
        what = f"{waiting:,} of {count_of(entry.row_count, 'row')} waiting"
        if entry.batch is not None:
            fate = "the batch waits whole" if entry.batch.fate is None else f"the batch was {entry.batch.fate.value}"
            what = f"{fate}: {entry.batch.why}"
        lines.append({"entry": entry.id, "at": str(entry.created_at), "source": entry.source, "state": what})
    headings = {"entry": ">entry", "at": "set aside at", "source": "source", "state": "state"}
    context.console.table(lines, headings, empty="nothing was ever set aside")


def _show(
    context: CommandContext, rows: Sequence[KeptRow], batches: Sequence[QuarantineFile], limit: int, *, as_json: bool
) -> None:
    """Show rows; before them why batches wait whole, which may have no bad row at all."""
    console = context.console
    if as_json:
        console.json([_row_to_json(row) for row in rows])
        return
    for entry in batches:
        console.line(f"{entry.id}  the batch waits whole  {entry.source}")
        console.line(f"    {entry.batch.why if entry.batch else ''}")
    for row in rows[:limit]:
        place = f" line {row.line}" if row.line is not None else ""
        before = f", was {row.resent_from}" if row.resent_from else ""
        console.line(f"{row.id}  {row.state}{before}  {row.entry.source}{place}")
        console.line(f"    {row.original if row.original is not None else '(not UTF-8)'}")
        if row.note.columns is not None:
            fixed = {name: "null" if value is None else value for name, value in row.note.columns.items()}
            console.line(f"    fixed: {', '.join(f'{name}={value}' for name, value in fixed.items())}")
        for error in row.errors:
            column = f"{error['column']}: " if error["column"] else ""
            found = f", found {error['value']!r}" if error["value"] is not None else ""
            warning = " (a warning)" if error["severity"] == "warning" else ""
            console.line(f"    {error['plug_in']} [{error['code']}] {column}{error['message']}{found}{warning}")
    if len(rows) > limit:
        console.note(f"{len(rows) - limit:,} more; -n N shows more, -o json all")
    if not rows and not batches:
        console.note("nothing waits")


def _report_next(
    context: CommandContext, record: DatasetRecord, rows: Sequence[KeptRow], batches: Sequence[QuarantineFile]
) -> None:
    """Say what can be done with rows that wait: those that are fixed are sent, others are fixed or given up."""
    unmended = next((row for row in rows if row.state == "waits"), None)
    if unmended is not None and has_action("quarantine", "fix"):
        what = f"odf-node quarantine fix {record.name} {unmended.id} --set \"COLUMN='VALUE'\""
        context.console.note(f"next: {what} fixes a row, or 'drop' in place of 'fix' gives it up")
    elif batches:
        what = f"odf-node quarantine resend {record.name} {batches[0].id} --release"
        context.console.note(
            f"next: {what} lets the batch pass, --file FILE sends another in its place, 'drop' gives it up"
        )
    elif any(row.state == "mended" for row in rows):
        context.console.note(f"next: odf-node quarantine resend {record.name}")


def _row_to_json(row: KeptRow) -> dict[str, object]:
    return {
        "row": str(row.id),
        "state": row.state,
        "source": row.entry.source,
        "record": row.record,
        "line": row.line,
        "stage": row.stage,
        "original": row.original,
        "columns": dict(row.given),
        "mended": None if row.note.columns is None else dict(row.note.columns),
        "errors": row.errors,
        "resentFrom": None if row.resent_from is None else str(row.resent_from),
        "sequenceNumber": row.note.sequence_number,
    }


def _export(context: CommandContext, rows: Sequence[KeptRow], output_format: str, path: Path | None) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row.columns))
    errors, line, original = REPORTED_COLUMNS
    table: dict[str, list[str | None]] = {
        ROW_COLUMN: [str(row.id) for row in rows],
        **{name: [row.columns.get(name) for row in rows] for name in names},
        errors: ["; ".join(f"{e['column'] or 'row'}: {e['message']}" for e in row.errors) for row in rows],
        line: [None if row.line is None else str(row.line) for row in rows],
        original: [row.original for row in rows],
    }
    write_rows(context.console, rows_of_texts(table), output_format, path=path)


def _resend(
    context: CommandContext,
    reader: QuarantineReader,
    record: DatasetRecord,
    arguments: argparse.Namespace,
    entries: Sequence[int],
    rows: Sequence[RowId],
) -> None:
    node, console = context.node, context.console
    node.sweeper.clean_up()
    resending = _resending(context, reader)
    reader.require_single(record, rows)
    batches = [entry for entry in reader.list_entries(record) if entry.id in entries and entry.batch is not None]
    if (arguments.release or arguments.file) and len(batches) != 1:
        raise UsageError("--release and --file are about one waiting batch: name its entry")
    if arguments.file is not None:
        check_input(str(arguments.file))
    with ReportLog(console, arguments.output_format) as log:
        for entry in batches:
            with console.progress(f"{record.name}: sending batch {entry.id} again"):
                report = resending.resend_batch(
                    record,
                    entry,
                    system_time=report_writing_time(context, record),
                    has_limits=not arguments.release,
                    file=arguments.file,
                )
            node.record("quarantine resend", record.name, f"batch {entry.id}")
            record = report.record
            log.add(report)
        entries = [entry for entry in entries if entry not in {each.id for each in batches}]
        if batches and not entries and not rows:
            return
        sendable, broken = resending.list_sendable(record, entries=entries, rows=rows)
        sent = [row for row in sendable if has_code(row, arguments.code)]
        with console.progress(f"{record.name}: sending {count_of(len(sent), 'row')} again"):
            for report in resending.resend_rows(record, sent, system_time=report_writing_time(context, record)):
                log.add(report)
        if sent:
            node.record("quarantine resend", record.name, count_of(len(sent), "row"))
        console.note(f"{record.name}: {count_of(len(sent), 'row')} sent again")
    if not (entries or rows):
        whole = [each.id for each in reader.list_entries(record) if each.batch is not None and each.batch.fate is None]
        for number in whole:
            console.note(f"{record.name}: batch {number} waits whole: name it to send it again")
    if broken:
        what = f"{count_of(len(broken), 'row')} could not be taken apart and cannot be sent as they are"
        console.note(f"{record.name}: {what}: fix them first ('odf-node quarantine export', then 'fix')")


def _drop(
    context: CommandContext,
    reader: QuarantineReader,
    record: DatasetRecord,
    entries: Sequence[int],
    rows: Sequence[RowId],
) -> None:
    node = context.node
    resending = _resending(context, reader)
    reader.require_single(record, rows)
    batches = [entry for entry in reader.list_entries(record) if entry.id in entries and entry.batch is not None]
    for entry in batches:
        record = resending.drop_batch(record, entry, system_time=report_writing_time(context, record))
    others = [entry for entry in entries if entry not in {each.id for each in batches}]
    dropped: list[RowId] = []
    if others or rows:
        sendable, broken = resending.list_sendable(record, entries=others, rows=rows)
        dropped = [row.id for row in (*sendable, *broken)]
        resending.drop_rows(record, dropped)
    what = ", ".join(
        [*(f"batch {entry.id}" for entry in batches), *([count_of(len(dropped), "row")] if dropped else [])]
    )
    node.record("quarantine drop", record.name, what)
    context.console.text(f"{record.name}: dropped {what}")


def _resending(context: CommandContext, reader: QuarantineReader) -> Resending:
    node = context.node
    return Resending(node.home, reader, node.ingestor.taker)
