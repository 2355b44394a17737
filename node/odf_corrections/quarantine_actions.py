"""``odf-node quarantine fix`` and ``deliver``: rows fixed by hand, and given to sinks.

``ACTIONS`` is found by its entry point in the group ``odf_node.actions``.

Source: clauses QUAR-4 and SINK-3 in ``spec/plug-ins/corrections.md``.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from odf_corrections.column_settings import explaining_texts, read_settings
from odf_corrections.fixing import compute_fixed, find_columns, iter_edited, list_edited
from odf_corrections.sinking import open_sinks
from odf_node.cli.actions import CommandActions
from odf_node.cli.context import CommandContext
from odf_node.cli.input_files import check_input
from odf_node.cli.quarantine_rows import add_code, add_ids, select_rows
from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.quarantined_rows import QuarantineReader
from odf_node.errors import UsageError
from odf_node.ports.notices import Told
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import RowId
from odf_node.wording import count_of

_LINES: Final = {
    "fix": "fix rows, by an edited file or by SQL; nothing is sent yet",
    "deliver": "give the sinks of the manifest what they did not have yet; only this and 'odf-node serve' do so",
}
_EXAMPLES: Final = """\
quarantine fix sales --file rows.ndjson
quarantine fix sales 3.1 --set "price=2.50"
quarantine deliver sales
"""


def configure(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare what an action takes."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    if name == "fix":
        add_ids(parser)
        add_code(parser)
        parser.add_argument("--file", type=Path, metavar="FILE", help="what 'export' wrote, edited (CSV or NDJSON)")
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="COLUMN=SQL",
            help="an expression over the columns, which are texts: abs(CAST(n AS BIGINT)) (may be repeated)",
        )


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    record = get_dataset(context.node.store, arguments.dataset)
    return {"fix": _fix, "deliver": _deliver}[arguments.action](context, record, arguments)


def _fix(
    context: CommandContext,
    record: DatasetRecord,
    arguments: argparse.Namespace,
) -> int:
    node = context.node
    reader = QuarantineReader(node.store, node.objects)
    rows = select_rows(reader, record, arguments)
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
        return 0
    node.store.fix_rows(record.id, fixed)
    node.record("quarantine fix", record.name, count_of(len(fixed), "row"))
    context.console.text(
        f"{record.name}: {count_of(len(fixed), 'row')} fixed; 'odf-node quarantine resend {record.name}' sends them"
    )
    return 0


def _deliver(context: CommandContext, record: DatasetRecord, _arguments: argparse.Namespace) -> int:
    is_done = True
    for each in open_sinks(context.node).deliver(record):
        context.console.line(f"{each.sink}: entry {each.entry} {each.reported} ({each.why})")
        is_done = is_done and each.reported is Told.DONE
    return 0 if is_done else 1


ACTIONS: Final = CommandActions(_LINES, tuple(_EXAMPLES.splitlines()), configure, run)
