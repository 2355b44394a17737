"""``odf-node publish``: say whether a dataset is served to others."""

import argparse
from collections.abc import Sequence
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.datasets.naming import select_datasets
from odf_node.derive.lineage import list_readers
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId

TOPIC: Final = "exchange with others"
HELP: Final = "serve datasets to others again, or with --off no longer (new ones are served)"
EXAMPLES: Final = """\
publish sales
publish --off sales
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name, identity or %% pattern")
    parser.add_argument(
        "--off", action="store_true", help="serve it no longer; others cannot distinguish it from an absent one"
    )


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Set the switch; a running node follows at its next request."""
    node = context.node
    records = select_datasets(node.store, arguments.datasets)
    for record in records:
        node.store.set_published(record.id, not arguments.off)
        node.record("publish --off" if arguments.off else "publish", record.name)
        context.console.text(f"{record.name} is {'no longer served' if arguments.off else 'served'} to others")
    if arguments.off and (derived := _list_served_readers(context, records)):
        context.console.note(
            f"still served, and derived from what is hidden now: {', '.join(derived)}; their rows show what they were "
            f"computed from ('odf-node publish --off {' '.join(derived)}' hides them as well)"
        )
    return 0


def _list_served_readers(context: CommandContext, hidden: Sequence[DatasetRecord]) -> list[str]:
    """List what is served and derived from hidden datasets, directly or through others."""
    chains = context.node.store
    known = chains.list_datasets()
    served = {record.name for record in known if record.published}
    found: dict[DatasetId, str] = {}
    waiting = [record.id for record in hidden]
    while waiting:
        for reader in list_readers(chains, known, waiting.pop(), find=chains.find_dataset):
            if reader.dataset_id not in found:
                found[reader.dataset_id] = reader.name
                waiting.append(reader.dataset_id)
    return sorted(name for name in found.values() if name in served)
