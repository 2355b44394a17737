"""``odf-node search``: find datasets by words, here and at other nodes."""

import argparse
from itertools import islice
from typing import Any

from odf_node.cli.context import Context
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.run import tell_failure
from odf_node.datasets.searching import Searching, match_texts
from odf_node.errors import UsageError
from odf_protocol.errors import OdfError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD|URL",
        help="parts of words in names, descriptions, keywords and names of columns, all of which have to occur; "
        "addresses of other nodes, which tell others names alone",
    )
    parser.add_argument(
        "-n", "--most", type=whole_number(1), default=50, metavar="N", help="show at most N of each node (default: 50)"
    )
    add_output_format(parser, "table", "json")


async def run(context: Context, arguments: argparse.Namespace) -> int:
    """Search this node, or the nodes that are named; one that does not answer does not stop the others."""
    addresses = [each for each in arguments.words if "://" in each]
    words = [each for each in arguments.words if "://" not in each]
    if not words:
        raise UsageError("say a word to look for")
    failures: list[int] = []
    rows: list[dict[str, Any]] = []
    for address in addresses:
        try:
            found = await _search_node(context, address, words)
        except OdfError as error:
            failures.append(tell_failure(f"search: {address}", error))
            continue
        rows += _cut(context, found, arguments.most, address)
    if not addresses:
        rows = _cut(context, _search_here(context, words, arguments.most + 1), arguments.most, "here")
    if arguments.output_format == "json":
        context.console.json(rows)
    else:
        shown = [{**row, "where": ", ".join(row["where"])} for row in rows]
        columns = {"name": "NAME", "kind": "KIND", "at": "AT", "where": "FOUND IN", "description": "DESCRIPTION"}
        if not addresses:
            del columns["at"]
        context.console.table(shown, columns, empty="nothing has all these words")
    return failures[0] if failures else 0


def _search_here(context: Context, words: list[str], most: int) -> list[dict[str, Any]]:
    searching = Searching(context.node.chains, context.node.store)
    return [
        {
            "name": each.record.name,
            "kind": each.record.kind.text,
            "at": "here",
            "where": list(each.where),
            "description": each.description,
            "id": str(each.record.id),
        }
        for each in islice(searching.iter_matches(words), most)
    ]


async def _search_node(context: Context, address: str, words: list[str]) -> list[dict[str, Any]]:
    wanted = [word.casefold() for word in words]
    return [
        {
            "name": each.name,
            "kind": each.kind,
            "at": f"{address.rstrip('/')}/{each.name}",
            "where": ["name"],
            "description": "",
            "id": each.dataset_id,
        }
        for each in await context.node.outgoing.list_offered(address)
        if match_texts(wanted, [("name", each.name)])
    ]


def _cut(context: Context, rows: list[dict[str, Any]], most: int, place: str) -> list[dict[str, Any]]:
    if len(rows) > most:
        context.console.note(f"{place}: there are more than {most}; say more words, or --most N")
    return rows[:most]
