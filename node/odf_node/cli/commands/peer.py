"""``odf-node peer``: name the nodes to gossip with."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format

TOPIC: Final = "exchange with others"
HELP: Final = "name the nodes to gossip with"
EXAMPLES: Final = """\
peer add https://peer.example
peer list
peer delete https://peer.example
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = add_actions(
        parser,
        {
            "add": "name a node to gossip with; it is never given up for others, and a running node follows at once",
            "list": "list the nodes that were named or exchanged with, and the key seen first at each",
            "delete": "forget a node and the key seen first there",
        },
    )
    actions["add"].add_argument("url", metavar="URL", help="http(s)://host:port of the node")
    add_output_format(actions["list"], "table", "json")
    actions["delete"].add_argument("url", metavar="URL", help="as 'odf-node peer list' shows it")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    peers, console = context.node.peers, context.console
    match arguments.action:
        case "add":
            address = peers.add(arguments.url)
            context.node.record("peer add", str(address))
            console.text(f"{address} is a peer")
        case "list":
            rows = [
                {
                    "url": peer.url,
                    "node": None if peer.node_key is None else str(peer.node_key),
                    "named": named,
                    "first_seen": str(peer.first_seen),
                }
                for peer, named in peers.list_peers()
            ]
            shown = [{**row, "node": row["node"] or "-", "named": "yes" if row["named"] else "no"} for row in rows]
            columns = {"url": "URL", "node": "NODE", "named": "NAMED BY YOU", "first_seen": "FIRST SEEN"}
            console.result(
                rows,
                columns,
                as_json=arguments.output_format == "json",
                shown=shown,
                empty="no peer is known; 'odf-node peer add URL' names one",
            )
        case _:
            url = peers.delete(arguments.url)
            context.node.record("peer delete", url)
            console.text(f"{url} is forgotten")
    return 0
