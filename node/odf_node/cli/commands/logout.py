"""``odf-node logout``: forget an access token for another server."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.errors import UsageError
from odf_node.exchange.logins import parse_origin

TOPIC: Final = "exchange with others"
HELP: Final = "forget an access token for another server"
EXAMPLES: Final = """\
logout https://peer.example
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("server", nargs="?", metavar="SERVER", help="its address, as for login")
    parser.add_argument("-a", "--all", action="store_true", help="forget the tokens of all servers")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Forget it here; whoever gave it can end it there."""
    logins, console = context.node.logins, context.console
    if bool(arguments.server) == arguments.all:
        raise UsageError("name a server, or --all")
    if arguments.all:
        for origin in logins.log_out_everywhere():
            context.node.record("logout", origin)
            console.text(f"logged out of {origin}")
        return 0
    logins.log_out(arguments.server)
    context.node.record("logout", parse_origin(arguments.server))
    console.text(f"logged out of {arguments.server}")
    return 0
