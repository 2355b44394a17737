"""``odf-node status``: what wants doing, and the command that does it."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format

TOPIC: Final = "care for this node"
HELP: Final = "show what is unsound, failing, stale or waiting, and the command that fixes it"
EXAMPLES: Final = """\
status
status -o json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_output_format(parser, "table", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show it; nobody is asked and nothing is changed."""
    context.load_settings()
    node = context.node
    report = node.read_models.make_status(node.refusals)
    rows = [
        {"condition": each.condition.value, "dataset": each.dataset, "what": each.what, "command": each.command}
        for each in report.list_findings()
    ]
    shown = [{**row, "dataset": row["dataset"] or "-"} for row in rows]
    columns = {"condition": "STATE", "dataset": "DATASET", "command": "COMMAND", "what": "WHAT"}
    as_json = arguments.output_format == "json"
    context.console.result(rows, columns, as_json=as_json, shown=shown, empty="nothing wants doing")
    return 0
