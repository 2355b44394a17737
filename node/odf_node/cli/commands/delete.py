"""``odf-node delete``: forget datasets."""

import argparse
import sys
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_dry_run
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UsageError

TOPIC: Final = "make and read datasets"
HELP: Final = "delete datasets and their data"
ALIASES: Final = ("rm",)
EXAMPLES: Final = """\
delete old.sales --dry-run
delete old.sales
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name, identity or %% pattern")
    add_dry_run(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Delete chains and data; a dataset that another one here is derived from is kept."""
    node = context.node
    records = select_datasets(node.store, arguments.datasets)
    readers = node.deletion.find_readers(records)
    for record, reader in readers:
        raise UsageError(f"'{record.name}' is an input of '{reader.name}'; delete that one first, or both together")
    if arguments.dry_run:
        for record in records:
            context.console.text(f"would delete {record.name}")
        return 0
    if not arguments.yes:
        names = ", ".join(record.name for record in records)
        if not sys.stdin.isatty():
            raise UsageError(f"this would delete {names}; say --yes to do it without being asked")
        if input(f"Delete {names}, with all history? [y/N] ").strip().lower() not in {"y", "yes"}:
            context.console.note("nothing was deleted")
            return 1
    for record in records:
        node.deletion.delete(record)
        node.record("delete", record.name, str(record.id))
        context.console.text(f"deleted {record.name}")
    return 0
