"""``odf-node publish``: say whether a dataset is served to others."""

import argparse

from odf_node.cli.context import Context
from odf_node.datasets.naming import select_datasets


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name, identity or %% pattern")
    parser.add_argument(
        "--off", action="store_true", help="serve it no longer; others cannot tell it from an absent one"
    )


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Set the switch; a running node follows at its next request."""
    node = context.node
    for record in select_datasets(node.chains, arguments.datasets):
        node.datasets.set_published(record.id, not arguments.off)
        node.record("publish --off" if arguments.off else "publish", record.name)
        context.console.text(f"{record.name} is {'no longer served' if arguments.off else 'served'} to others")
    return 0
