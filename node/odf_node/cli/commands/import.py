# ruff: noqa: N999 - the command is called so
"""``odf-node import``: take datasets from files that an ODF program wrote, through the gate of every pull."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext, parse_place
from odf_node.cli.parsing import add_output_format, add_parallel, add_rate_limit
from odf_node.cli.reports import ReportLog
from odf_node.errors import UsageError
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_protocol.did import DatasetId
from odf_protocol.names import DatasetName
from odf_protocol.policy import Policy

TOPIC: Final = "exchange with others"
HELP: Final = "take datasets from files (folders, archives, buckets), verified like those of any untrusted peer"
EXAMPLES: Final = """\
import /media/stick/sales
import sales.tar --as their.sales
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="FOLDER|URL|FILE",
        help="a dataset's folder, an archive NAME.tar, a URL or a place in a bucket; inputs before what is derived "
        "from them",
    )
    parser.add_argument("--as", dest="local_name", metavar="NAME", help="call it so in this node")
    parser.add_argument(
        "--policy",
        choices=["reexecute", "integrity", "unsigned"],
        help="what proof is enough (default: re-execute derivatives; signatures and hashes for roots)",
    )
    parser.add_argument("--identity", metavar="DID", help="reject unless the dataset is this one (did:odf:...)")
    add_rate_limit(parser)
    add_parallel(parser)
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Take one after the other; each is verified as if it came from a stranger."""
    for option, value in (("--as", arguments.local_name), ("--identity", arguments.identity)):
        if value and len(arguments.sources) != 1:
            raise UsageError(f"{option} is for one dataset, so import one")
    node = context.node
    pull_options = PullOptions(
        local_name=str(DatasetName.parse(arguments.local_name)) if arguments.local_name else None,
        policy=Policy(arguments.policy) if arguments.policy else None,
        expected_id=DatasetId.parse(arguments.identity) if arguments.identity else None,
        command="import",
    )
    context.limit_transfers(rate=arguments.limit_rate, parallel=arguments.parallel)
    node.sweeper.clean_up()
    with ReportLog(context.console, arguments.output_format) as log:
        for source in arguments.sources:
            with context.console.progress(f"{source}: starting") as progress:
                target = PullTarget(source, None, parse_place(source))
                log.add(await node.pulling.pull(target, pull_options, progress))
    return 0
