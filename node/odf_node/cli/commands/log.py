"""``odf-node log``: the metadata chain of a dataset."""

import argparse
import json
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.datasets.ingest_metrics import stages_to_json
from odf_node.datasets.naming import get_dataset
from odf_node.derive.chain_log import describe_event
from odf_node.wording import count_of
from odf_protocol.manifest import iter_log_yaml, manifest_to_json

TOPIC: Final = "make and read datasets"
HELP: Final = "show the metadata chain of a dataset, newest first"
EXAMPLES: Final = """\
log sales
log sales --all -o yaml
"""

_NEWEST: Final = 20  # guess: a screen


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument(
        "-n",
        "--limit",
        type=whole_number(1),
        default=_NEWEST,
        metavar="N",
        help=f"only the newest N blocks (default: {_NEWEST})",
    )
    how_many.add_argument("--all", dest="limit", action="store_const", const=None, help="all blocks, down to the first")
    add_output_format(parser, "oneline", "yaml", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Print blocks, newest first, with who signed them."""
    record = get_dataset(context.node.store, arguments.dataset)
    for logged in context.node.read_models.chain_log.read(record, limit=arguments.limit):
        block, query, figures = logged.block, logged.query, logged.statistics
        did = logged.did
        if arguments.output_format == "json":
            plain = json.loads(manifest_to_json(block))
            shown = {"blockHash": str(block.hash), "signed": logged.is_signed}
            shown |= {"filesAbsent": True} if logged.lacks_files else {}
            shown |= ({"query": query} if query else {}) | plain
            if figures is not None:
                shown |= {"statistics": figures.to_json(), "statisticsAre": str(logged.basis)}
            shown |= {"stages": stages_to_json(logged.stages)} if logged.stages else {}
            shown |= {} if logged.row_counts is None else {"rows": logged.row_counts.to_json()}
            context.console.json(shown, indent=None)
        elif arguments.output_format == "oneline":
            context.console.line(
                f"{block.sequence_number:>6}  {block.hash.short}  {block.system_time}  {describe_event(block.event)}"
                f"{f'  {query}' if query else ''}"
                f"{f'  {did}' if did else ''}"
                f"{'  (not here)' if logged.lacks_files else ''}",
                hang=3,
            )
        else:
            # As it is, line ends and all: they may belong to a text of the block.
            signed = "signed by the dataset's key" if logged.is_signed else "not signed"
            signed += ", its files are not here" if logged.lacks_files else ""
            signed += f", {query}" if query else ""
            signed += f"; {did}" if did else ""
            context.console.raw(f"# Block {block.sequence_number} ({signed})\n" + "".join(iter_log_yaml([block])))
    if arguments.limit is not None and (older := record.head.sequence_number + 1 - arguments.limit) > 0:
        context.console.note(f"{count_of(older, 'older block')} not shown; --all shows them")
    return 0
