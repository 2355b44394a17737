"""``odf-node subscribe``: bring datasets up to date by themselves when there is news of them."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.errors import UsageError

TOPIC: Final = "exchange with others"
HELP: Final = "bring datasets up to date by themselves when there is news of them"
EXAMPLES: Final = """\
subscribe prices
subscribe --list
subscribe --off prices
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="name here, did:odf:..., or URL at another node")
    parser.add_argument("--as", dest="local_name", metavar="NAME", help="what it is to be called here")
    parser.add_argument("--off", action="store_true", help="end the subscription; what is here stays")
    parser.add_argument("--list", action="store_true", dest="listing", help="list what is subscribed to")
    add_output_format(parser, "table", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Change subscriptions; a running node follows at its next round."""
    subscriptions, console, node = context.node.subscriptions, context.console, context.node
    if not arguments.datasets and not arguments.listing:
        raise UsageError("name a dataset, or see with --list what is subscribed to")
    if arguments.local_name and len(arguments.datasets) != 1:
        raise UsageError("--as is for one dataset")
    for source in arguments.datasets:
        if arguments.off:
            ended = subscriptions.remove(source)
            node.record("subscribe --off", ended.name)
            console.note(f"{ended.name} is no longer brought up to date by itself")
        else:
            made = await subscriptions.add(source, local_name=arguments.local_name)
            node.record("subscribe", made.name, str(made.dataset_id))
            console.note(f"{made.name} is brought up to date by itself while this node is served")
    if arguments.listing:
        rows = [
            {"name": one.name, "dataset": str(one.dataset_id), "url": one.url, "since": str(one.since)}
            for one in node.store.list_subscriptions()
        ]
        shown = [{**row, "url": row["url"] or "any peer"} for row in rows]
        columns = {"name": "NAME", "dataset": "DATASET", "url": "FIRST ASKED AT", "since": "SINCE"}
        as_json = arguments.output_format == "json"
        console.result(rows, columns, as_json=as_json, shown=shown, empty="nothing is subscribed to")
    return 0
