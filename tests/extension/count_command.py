"""``odf-node count``: how many blocks datasets have. The one file of an external package that adds a command."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.naming import get_dataset

TOPIC: Final = "make and read datasets"
HELP: Final = "show how many blocks datasets have"
EXAMPLES: Final = """\
count sales totals
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name or identity")
    add_output_format(parser, "table", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show a row for each dataset."""
    records = [get_dataset(context.node.store, name) for name in arguments.datasets]
    rows = [{"dataset": each.name, "blocks": each.head.sequence_number + 1} for each in records]
    context.console.result(rows, {"dataset": "DATASET", "blocks": ">BLOCKS"}, as_json=arguments.output_format == "json")
    return 0
