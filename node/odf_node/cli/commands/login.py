"""``odf-node login``: keep an access token for another server."""

import argparse
import getpass
import sys
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.errors import UsageError
from odf_node.exchange.logins import parse_origin

TOPIC: Final = "exchange with others"
HELP: Final = "keep an access token for another server"
EXAMPLES: Final = """\
login https://peer.example
login --check https://peer.example
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "server",
        nargs="?",
        metavar="SERVER",
        help="its address, https://host or odf+https://host; none: list the servers that tokens are kept for",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--access-token",
        metavar="TOKEN",
        help="the token (without it, it is asked for, or read from standard input: other users cannot see it there)",
    )
    how.add_argument("--user", metavar="NAME", help="get a token for this user; the password is asked for, or read")
    how.add_argument("--check", action="store_true", help="only ask the server whether the token is still good")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Keep the token; ``pull`` and ``push`` send it to this server, and to no other."""
    logins, console, server = context.node.logins, context.console, arguments.server
    if server is None:
        if arguments.check or arguments.user or arguments.access_token:
            raise UsageError("name a server: odf-node login https://host")
        console.text("\n".join(logins.list_origins()) or "there are no logins")
        return 0
    if arguments.check:
        known = await logins.check(server)
    elif arguments.user:
        await logins.log_in_as(server, arguments.user, _read_secret(f"password of {arguments.user}: "))
        known = True
    else:
        known = await logins.log_in(server, arguments.access_token or _read_secret("access token: "))
    if not arguments.check:
        context.node.record("login", parse_origin(server))
    doubt = "" if known else " (it does not say whether the token is good)"
    console.text(f"logged in at {server}{doubt}")
    return 0


def _read_secret(prompt: str) -> str:
    secret = getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise UsageError("nothing was given on standard input; give a token, or --access-token")
    return secret
