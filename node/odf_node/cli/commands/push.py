"""``odf-node push``: offer a dataset to another node."""

import argparse
import os

from odf_node.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET")
    parser.add_argument("--to", required=True, metavar="URL", help="where: http://host:port/name")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        default=os.environ.get("ODF_NODE_TOKEN"),
        help="what the other node gave you (default: $ODF_NODE_TOKEN)",
    )
    parser.add_argument("-o", "--output-format", choices=["text", "json"], default="text")


async def run(context: Context, arguments: argparse.Namespace) -> int:
    """Send what the other node lacks; it verifies everything before it accepts."""
    from odf_node.services.naming import get_dataset

    node, console = context.node, context.console
    record = get_dataset(node.store, arguments.dataset)
    with console.progress(f"{record.name}: asking {arguments.to}") as progress:
        report = await node.pushing.push(record, arguments.to, token=arguments.token, progress=progress)
    if arguments.output_format == "json":
        console.json(
            {
                "dataset": record.name,
                "to": arguments.to,
                "newBlocks": report.new_blocks,
                "upToDate": not report.new_blocks,
            }
        )
    elif report.new_blocks:
        console.text(f"{record.name}: {arguments.to} verified and accepted {report.new_blocks} new blocks")
    else:
        console.text(f"{record.name}: {arguments.to} has everything already")
    return 0
