"""``odf-node schedule``: what the daemon pulls by itself, when next, and what became of it."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_schedules.overview import ScheduledDataset, open_overview, time_of

TOPIC: Final = "care for this node"
HELP: Final = "show which datasets are pulled by themselves, when next, and what became of it"
EXAMPLES: Final = """\
schedule
schedule --failing
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--failing", action="store_true", help="only datasets whose last pull failed")
    add_output_format(parser, "table", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show what the daemon noted; nobody is asked and nothing is changed."""
    found = open_overview(context.node.home).list_datasets()
    rows = [_row_of(each) for each in found if each.standing.is_failing or not arguments.failing]
    shown = [{key: "-" if value is None else value for key, value in row.items()} for row in rows]
    columns = {"dataset": "DATASET", "when": "WHEN", "next": "NEXT", "last": "LAST", "result": "RESULT", "text": "WHY"}
    if arguments.failing:
        columns = {"dataset": "DATASET", "result": "RESULT", "attempts": "TRIES", "last_success": "WELL", **columns}
    empty = "no dataset is pulled by itself; [[schedule]] in the settings of 'odf-node serve' or a manifest says which"
    empty = "no pull failed" if found and arguments.failing else empty
    context.console.result(rows, columns, as_json=arguments.output_format == "json", shown=shown, empty=empty)
    return 0


def _row_of(each: ScheduledDataset) -> dict[str, object]:
    standing, last, well = each.standing, time_of(each.standing.ended_ms), time_of(each.standing.well_ms)
    return {
        "dataset": each.name,
        "when": each.when,
        "next": None if each.next_at is None else str(each.next_at),
        "last": None if last is None else str(last),
        "result": standing.result,
        "last_success": None if well is None else str(well),
        "attempts": standing.attempts,
        "left_alone_until": None if each.rests_until is None else str(each.rests_until),
        "text": each.why or None,
    }
