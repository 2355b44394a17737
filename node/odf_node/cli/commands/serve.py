"""``odf-node serve``: run the node."""

import argparse
from pathlib import Path

from odf_node.cli.context import Context
from odf_node.cli.parsing import HIGHEST_PORT, whole_number


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--address", default="127.0.0.1", metavar="A", help="listen there (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument(
        "--http-port",
        type=whole_number(0, HIGHEST_PORT),
        default=8080,
        metavar="N",
        help="listen on this port (default: 8080; 0: any free one)",
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="write the address there once requests are answered"
    )


async def run(context: Context, arguments: argparse.Namespace) -> int:
    """Serve until told to stop (Ctrl-C or SIGTERM); running requests are finished first."""
    from odf_node.serving import serve

    await serve(
        context.node,
        address=arguments.address,
        port=arguments.http_port,
        ready_file=arguments.ready_file,
        console=context.console,
    )
    return 0
