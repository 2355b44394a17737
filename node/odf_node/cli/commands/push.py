"""``odf-node push``: offer a dataset to another node."""

import argparse
import os

from odf_node.cli.context import Context
from odf_node.cli.parsing import add_output_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    parser.add_argument("--to", required=True, metavar="URL", help="where: http://host:port/name, odf+http://…")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        default=os.environ.get("ODF_NODE_TOKEN"),
        help="what the other node gave you (default: $ODF_NODE_TOKEN, else that of 'odf-node login')",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="where the other node has another history: ask it to replace that one (odf+http addresses)",
    )
    parser.add_argument(
        "--visibility",
        choices=("private", "public"),
        default="private",
        help="who may see a dataset that is new there (odf+http addresses; default: private)",
    )
    add_output_format(parser, "text", "json")


async def run(context: Context, arguments: argparse.Namespace) -> int:
    """Send what the other node lacks; it verifies everything before it accepts."""
    from odf_node.services.naming import get_dataset

    node, console = context.node, context.console
    record = get_dataset(node.store, arguments.dataset)
    with console.progress(f"{record.name}: asking {arguments.to}") as progress:
        outcome = await node.pushing.push(
            record,
            arguments.to,
            token=arguments.token,
            progress=progress,
            force=arguments.force,
            public=arguments.visibility == "public",
        )
    if arguments.output_format == "json":
        console.json(
            {
                "dataset": record.name,
                "to": outcome.url,
                "upToDate": outcome.was_up_to_date,
                "sentBlocks": outcome.sent_blocks,
                "sentBytes": outcome.sent_bytes,
            }
        )
    elif outcome.was_up_to_date:
        console.text(f"{record.name}: {outcome.url} has everything already")
    else:
        did = "verified and accepted" if outcome.is_verified else "took"
        console.text(f"{record.name}: {outcome.url} {did} {outcome.sent_blocks} new blocks")
    return 0
