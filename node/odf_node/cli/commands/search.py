"""``odf-node search``: find datasets by words, here and at other nodes."""

import argparse
import asyncio
from itertools import islice
from typing import Any, Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.run import report_failure
from odf_node.datasets.searching import Searching
from odf_node.errors import UsageError
from odf_node.wording import count_of
from odf_protocol.errors import OdfError
from odf_protocol.public_addresses import without_mark

TOPIC: Final = "make and read datasets"
HELP: Final = "find datasets by words in names, descriptions, keywords and columns, here or at other nodes"
EXAMPLES: Final = """\
search umsatz
search price shop --far
"""

MAX_NODES: Final = 32  # guess: more than a person knows; each learns what is looked for
_NODES_AT_ONCE: Final = 8  # guess: with the time below, all are asked within a minute and a half
_ANSWER_S: Final = 20.0
"""What one node has for all its pages.  # guess: a hundred pages of names on an ordinary line"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD|URL",
        help="parts of words in names, descriptions, keywords and names of columns, all of which have to occur; "
        "addresses of other nodes, which are asked instead of this one",
    )
    parser.add_argument(
        "--far",
        action="store_true",
        help=f"ask this node, its peers and nodes known by gossip, {MAX_NODES} at most; they learn the words",
    )
    parser.add_argument(
        "-n", "--most", type=whole_number(1), default=50, metavar="N", help="show at most N of each node (default: 50)"
    )
    add_output_format(parser, "table", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Search this node, or the nodes that are named; one that does not answer does not stop the others."""
    addresses = [each for each in arguments.words if "://" in each]
    words = [each for each in arguments.words if "://" not in each]
    if not words:
        raise UsageError("say a word to look for")
    rows: list[dict[str, Any]] = []
    if arguments.far or not addresses:
        rows = _cut(context, _search_here(context, words, arguments.most + 1), arguments.most, "here")
    far = context.node.peers.list_askable(MAX_NODES) if arguments.far else []
    silent: list[str] = []
    failures: list[int] = []
    semaphore = asyncio.Semaphore(_NODES_AT_ONCE)

    async def ask(address: str) -> "list[dict[str, Any]] | OdfError":
        try:
            async with semaphore:
                return await _search_node(context, address, words, arguments.most + 1)
        except OdfError as error:
            return error

    asked = list(dict.fromkeys([*addresses, *far]))
    for address, found in zip(asked, await asyncio.gather(*map(ask, asked)), strict=True):
        if not isinstance(found, OdfError):
            rows += _cut(context, found, arguments.most, without_mark(address))
        elif address in addresses:
            failures.append(report_failure(f"search: {address}", found))
        else:
            silent.append(without_mark(address))
    if silent:
        context.console.note(
            f"{len(silent)} of {count_of(len(asked), 'node')} did not answer as they should: {', '.join(silent)}"
        )
    if arguments.far and not far:
        context.console.note("no other node is known; 'odf-node peer add URL' names one")
    rows = _joined(rows)
    if arguments.output_format == "json":
        context.console.json(rows)
    else:
        shown = [
            {**row, "at": ", ".join([row["at"], *row["alsoAt"]]), "where": ", ".join(row["where"])} for row in rows
        ]
        columns = {"name": "NAME", "kind": "KIND", "at": "AT", "where": "FOUND IN", "description": "DESCRIPTION"}
        if not asked:
            del columns["at"]
        context.console.table(shown, columns, empty="nothing has all these words")
    return failures[0] if failures else 0


def _search_here(context: CommandContext, words: list[str], most: int) -> list[dict[str, Any]]:
    searching = Searching(context.node.store)
    return [
        {
            "name": each.record.name,
            "kind": each.record.kind.text,
            "at": "here",
            "where": list(each.where),
            "description": each.texts.description,
            "id": str(each.record.id),
        }
        for each in islice(searching.iter_matches(words), most)
    ]


async def _search_node(context: CommandContext, address: str, words: list[str], most: int) -> list[dict[str, Any]]:
    found = await context.node.outgoing.search_proposed(address, words, most, limit_s=_ANSWER_S)
    return [
        {
            "name": each.name,
            "kind": each.kind,
            "at": each.url,
            "where": list(each.where),
            "description": each.description,
            "id": each.dataset_id,
        }
        for each in found
    ]


def _cut(context: CommandContext, rows: list[dict[str, Any]], most: int, place: str) -> list[dict[str, Any]]:
    if len(rows) > most:
        context.console.note(f"{place}: there are more than {most}; say more words, or --most N")
    return rows[:most]


def _joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one row of those of one dataset: the first, with the other places where it is."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        first = found.setdefault(row["id"], {**row, "alsoAt": []})
        if row["at"] != first["at"]:
            first["alsoAt"].append(row["at"])
    return list(found.values())
