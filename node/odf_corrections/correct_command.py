"""``odf-node correct``: retract or correct rows of one's own root dataset, with a reason."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odf_corrections.column_settings import explaining_texts, read_settings
from odf_corrections.correcting import Correcting
from odf_node.cli.context import CommandContext, report_writing_time
from odf_node.cli.input_files import check_input
from odf_node.cli.parsing import add_dry_run, add_output_format
from odf_node.cli.rows import write_rows
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.referencing import References
from odf_node.errors import UsageError
from odf_node.ingest.report import describe_reasons
from odf_node.wording import count_of

if TYPE_CHECKING:
    from odf_corrections.correcting import Correction
    from odf_node.records.datasets import DatasetRecord

TOPIC: Final = "make and read datasets"
HELP: Final = "retract or correct rows of a root dataset by hand, with a reason"
EXAMPLES: Final = """\
correct sales --retract --where "id = 17" --reason "entered twice"
correct sales --set "price=2.50" --where "id = 17" --reason "a slip of the pen" --dry-run
"""

_SHOWN = 20  # guess: one screen


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        "Nothing is erased: the rows stay in the history, and one new block takes them back or puts others in their "
        "place. Derivatives follow with their next step. Validators of the dataset judge what rows become, and reject "
        "the correction as a whole; converters are not asked."
    )
    parser.add_argument("dataset", metavar="DATASET", help="name or identity of a root dataset of this node's own")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--retract", action="store_true", help="take the rows back")
    how.add_argument(
        "--set",
        action="append",
        metavar="COLUMN=SQL",
        help="correct a column: an expression over the row, such as deaths=deaths+1000 (may be repeated)",
    )
    how.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="correct rows by a file (CSV or NDJSON): 'offset' says which row, other columns what it shall have; "
        "'odf-node sql' writes one to be edited",
    )
    parser.add_argument(
        "--where", metavar="SQL", help='which current rows, such as "offset = 17" (with --retract and --set)'
    )
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; it becomes part of the chain")
    add_dry_run(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show what becomes of the rows, and write it as one block."""
    node, console = context.node, context.console
    if (arguments.where is None) != (arguments.file is not None):
        raise UsageError("--where selects rows: it goes with --retract and --set, and --file has offsets")
    if arguments.file is not None:
        check_input(str(arguments.file))
    context.load_settings()
    if not arguments.dry_run:
        node.sweeper.clean_up()
    record = get_dataset(node.store, arguments.dataset)
    correcting = _correcting(context)
    with console.progress(f"{record.name}: looking for the rows"):
        planned = _plan(context, correcting, record, arguments)
    what = f"{count_of(planned.row_count, 'row')} of {record.name}"
    _show(context, planned, as_json=arguments.output_format == "json")
    verb = "retract" if planned.after is None else "correct"
    if planned.warnings:
        console.note(f"warnings of rows that may stand: {describe_reasons(planned.warnings)}")
    if not planned.row_count:
        console.note(f"{record.name}: every row has these values already")
        return 0
    if arguments.dry_run:
        console.note(f"would {verb} {what}")
        return 0
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise UsageError(f"this would {verb} {what}; say --yes to do it without being asked")
        if input(f"{verb.capitalize()} {what}? [y/N] ").strip().lower() not in {"y", "yes"}:
            console.note("nothing was changed")
            return 1
    changed = correcting.apply(planned, system_time=report_writing_time(context, record))
    node.record("correct", record.name, f"{verb} {what}, block {changed.head.sequence_number}")
    console.note(f"{verb}ed {what}, in block {changed.head.sequence_number}")
    return 0


def _correcting(context: CommandContext) -> Correcting:
    node = context.node
    references = References(node.store, node.objects, node.queries.engines.rows)
    return Correcting(node.home, node.queries, references)


def _plan(
    context: CommandContext, correcting: Correcting, record: "DatasetRecord", arguments: argparse.Namespace
) -> "Correction":
    if arguments.retract:
        return correcting.plan_retraction(record, arguments.where, arguments.reason)
    if arguments.file is not None:
        return correcting.plan_file(record, arguments.file, arguments.reason, context.node.now())
    settings, now = read_settings(arguments.set, example="deaths=deaths+1000"), context.node.now()
    with explaining_texts(settings):
        return correcting.plan_setting(record, arguments.where, settings, arguments.reason, now)


def _show(context: CommandContext, planned: "Correction", *, as_json: bool) -> None:
    """Show rows before and after: all of them for programs, some for people."""
    known = planned.view.vocabulary
    before, after = planned.before, planned.after
    kept = before.num_rows if as_json else min(before.num_rows, _SHOWN)
    signs = ["-", "+"] if after is not None else ["-"]
    sides = [before.slice(0, kept)] + ([after.slice(0, kept)] if after is not None else [])
    rows = pa.concat_tables([side.slice(number, 1) for number in range(kept) for side in sides] or [before.slice(0, 0)])
    shown = rows.drop_columns([known.op, known.system_time])
    shown = shown.add_column(0, "change", pa.array(signs * kept, pa.string()))
    write_rows(context.console, shown, "json" if as_json else "table", empty="no row changes")
    if kept < before.num_rows:
        context.console.note(f"{before.num_rows - kept:,} more; -o json shows all")
