"""``odf-node quarantine``: look at what was not taken, fix it, send it again or give it up."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from odf_node.cli.column_settings import explaining_texts, read_settings
from odf_node.cli.context import CommandContext, report_writing_time
from odf_node.cli.input_files import check_input
from odf_node.cli.parsing import add_actions, add_output_format, whole_number
from odf_node.cli.reports import ReportLog
from odf_node.cli.rows import rows_of_texts, write_rows
from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.quarantined_rows import KeptRow, QuarantineReader
from odf_node.errors import UsageError
from odf_node.ingest.fixing import REPORTED_COLUMNS, ROW_COLUMN, compute_fixed, find_columns, iter_edited, list_edited
from odf_node.ingest.resending import Resending
from odf_node.ports.notices import Told
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import QuarantineFile, RowId
from odf_node.wording import count_of

TOPIC: Final = "make and read datasets"
HELP: Final = "show what ingests could not take; fix it, send it again, give it up"
EXAMPLES: Final = """\
quarantine list sales
quarantine show sales
quarantine export sales --output-path rows.ndjson
quarantine fix sales --file rows.ndjson
quarantine fix sales 3.1 --set "price=2.50"
quarantine resend sales
quarantine drop sales 3.1
quarantine deliver sales
"""

_IDS = "an entry (3) or a row (3.17), as 'quarantine list' and 'show' number them"


_ACTIONS: Final = {
    "list": "list entries: what ingests set aside, and what of it waits",
    "show": "show rows with all their errors, as they were sent",
    "export": "write rows to be edited, each with its id and its errors",
    "fix": "fix rows, by an edited file or by SQL; nothing is sent yet",
    "resend": "send what waits through the whole pipeline again, exactly once",
    "drop": "give up what waits; it stays to be looked at",
    "deliver": "give the sinks of the manifest what they did not have yet; only this and 'odf-node serve' do so",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    parser.epilog = "In 'odf-node sql', NAME__quarantine is a table of all rows that were set aside, with their errors."
    for name, child in add_actions(parser, _ACTIONS).items():
        child.add_argument("dataset", metavar="DATASET", help="name or identity")
        if name not in {"list", "deliver"}:
            needed = "+" if name == "drop" else "*"
            rest = "" if name == "drop" else " (default: everything that waits)"
            child.add_argument("ids", nargs=needed, metavar="ID", help=f"{_IDS}{rest}")
        _add_options(child, name)


def _add_options(child: argparse.ArgumentParser, name: str) -> None:
    if name not in {"list", "drop", "deliver"}:
        child.add_argument("--code", metavar="CODE", help="only rows that have an error of this code, such as range")
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
        case "fix":
            child.add_argument("--file", type=Path, metavar="FILE", help="what 'export' wrote, edited (CSV or NDJSON)")
            child.add_argument(
                "--set",
                action="append",
                default=[],
                metavar="COLUMN=SQL",
                help="an expression over the columns, which are texts: abs(CAST(n AS BIGINT)) (may be repeated)",
            )
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
    if arguments.action == "deliver":
        return _deliver(context, record)
    entries, rows = _read_ids(arguments.ids)
    reader.require_known(record, entries, rows)
    if arguments.action == "drop":
        _drop(context, reader, record, entries, rows)
        return 0
    if arguments.action == "resend":
        _resend(context, reader, record, arguments, entries, rows)
        return 0
    found = [
        row
        for row in reader.iter_rows(record, entries=entries, rows=rows)
        if _has_code(row, arguments.code) and (arguments.ids or row.waits or row.state == "batch waits")
    ]
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
        case _:
            _fix(context, reader, record, found, arguments)
    return 0


def _deliver(context: CommandContext, record: DatasetRecord) -> int:
    is_done = True
    for each in context.node.sinks.deliver(record):
        context.console.line(f"{each.sink}: entry {each.entry} {each.reported} ({each.why})")
        is_done = is_done and each.reported is Told.DONE
    return 0 if is_done else 1


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
    if unmended is not None:
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


def _fix(
    context: CommandContext,
    reader: QuarantineReader,
    record: DatasetRecord,
    rows: Sequence[KeptRow],
    arguments: argparse.Namespace,
) -> None:
    node = context.node
    if (arguments.file is None) == (not arguments.set):
        raise UsageError("say how rows are fixed: either --file FILE or --set COLUMN=SQL")
    view = load_view(node.store, record.id)
    fixed: Mapping[RowId, Mapping[str, str | None]]
    untouched = 0
    if arguments.file is not None:
        check_input(str(arguments.file))
        edited = {each.row: each.columns for each in iter_edited(arguments.file)}
        reader.require_single(record, edited)
        columns = find_columns({name for each in edited.values() for name in each}, rows, view)
        named = {row: {columns[name]: text for name, text in each.items()} for row, each in edited.items()}
        fixed = list_edited(named, rows)
        untouched = len(named) - len(fixed)
    else:
        waiting = [row for row in rows if row.waits]
        if not waiting:
            reader.require_single(record, (row.id for row in rows))
        settings = read_settings(arguments.set, example="\"people=replace(people, ',', '')\"")
        columns = find_columns(settings, waiting, view)
        expressions = {columns[name]: sql for name, sql in settings.items()}
        # Who writes keeps a sweep of the staging folder away from the rows that the engine reads.
        with node.objects.writing(), context.console.progress("mending"), explaining_texts(settings):
            fixed = compute_fixed(node.engines, waiting, expressions, node.home.folder.staging)
    if untouched:
        reported = count_of(untouched, "row")
        context.console.note(f"left as it is, since nothing was edited: {reported} of {arguments.file}")
    if not fixed:
        context.console.text(f"{record.name}: nothing was edited, no row was fixed")
        return
    node.store.fix_rows(record.id, fixed)
    node.record("quarantine fix", record.name, count_of(len(fixed), "row"))
    context.console.text(
        f"{record.name}: {count_of(len(fixed), 'row')} fixed; 'odf-node quarantine resend {record.name}' sends them"
    )


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
        sent = [row for row in sendable if _has_code(row, arguments.code)]
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


def _read_ids(words: Sequence[str]) -> tuple[list[int], list[RowId]]:
    entries, rows = [], []
    for word in words:
        if word.isascii() and word.isdigit() and len(word) <= 15:
            entries.append(int(word))
        elif (row := RowId.find(word)) is not None:
            rows.append(row)
        else:
            raise UsageError(f"'{word}' is no id: expected {_IDS}")
    return entries, rows


def _has_code(row: KeptRow, code: str | None) -> bool:
    return code is None or any(error["code"] == code for error in row.errors)
