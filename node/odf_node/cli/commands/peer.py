"""``odf-node peer``: name the nodes to gossip with."""

import argparse

from odf_node.cli.context import Context
from odf_node.cli.main import nested_options
from odf_node.cli.parsing import add_output_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    add = actions.add_parser(
        "add",
        help="name a node to gossip with; it is never given up for others",
        description="Name a node to gossip with; it is never given up for others. A running node follows at once.",
        parents=[nested_options()],
    )
    add.add_argument("url", metavar="URL", help="http(s)://host:port of the node")
    listing = actions.add_parser(
        "list",
        help="list the nodes that were named or exchanged with",
        description="List the nodes that were named or exchanged with, and the key seen first at each.",
        parents=[nested_options()],
    )
    add_output_format(listing, "table", "json")
    delete = actions.add_parser(
        "delete",
        help="forget a node and the key seen first there",
        description="Forget a node and the key seen first there.",
        parents=[nested_options()],
    )
    delete.add_argument("url", metavar="URL", help="as 'odf-node peer list' shows it")


def run(context: Context, arguments: argparse.Namespace) -> int:
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
            if arguments.output_format == "json":
                console.json(rows)
                return 0
            shown = [{**row, "node": row["node"] or "-", "named": "yes" if row["named"] else "no"} for row in rows]
            columns = {"url": "URL", "node": "NODE", "named": "NAMED BY YOU", "first_seen": "FIRST SEEN"}
            console.table(shown, columns, empty="no peer is known; 'odf-node peer add URL' names one")
        case _:
            url = peers.delete(arguments.url)
            context.node.record("peer delete", url)
            console.text(f"{url} is forgotten")
    return 0
