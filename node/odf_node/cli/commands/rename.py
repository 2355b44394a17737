"""``odf-node rename``: another local name for a dataset."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.datasets.naming import Renaming, get_dataset

TOPIC: Final = "make and read datasets"
HELP: Final = "give a dataset another name; its identity stays"
ALIASES: Final = ("mv",)
EXAMPLES: Final = """\
rename sales shop.sales
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    parser.add_argument("name", metavar="NAME", help="what it is to be called; others are served it under this name")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Rename; policies match names, so it is said where another rule holds now."""
    node, console = context.node, context.console
    renaming = Renaming(node.store, node.read_policies())
    renamed = renaming.rename(get_dataset(node.store, arguments.dataset), arguments.name)
    old = renamed.before.name
    node.record("rename", renamed.name, f"was {old}; {renamed.before.id}")
    console.text(f"renamed {old} to {renamed.name}")
    if renamed.before.published:
        console.note(f"others find it at .../{renamed.name}; who follows .../{old} finds nothing there any more")
    if renamed.new_rule != renamed.old_rule:
        console.warn(f"what comes for it is accepted by {renamed.new_rule} now; it was {renamed.old_rule}")
    return 0
