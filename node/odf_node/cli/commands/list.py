"""``odf-node list``: the datasets of this node."""

import argparse
from typing import TYPE_CHECKING, Any, Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from odf_node.upkeep.listing import ListedDataset

TOPIC: Final = "make and read datasets"
HELP: Final = "list the datasets of this node"
ALIASES: Final = ("ls",)
EXAMPLES: Final = """\
list
list http://peer.example:8080
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="DATASET|URL",
        help="only these (names or %% patterns); the address of another node: what it offers",
    )
    parser.add_argument("-w", "--wide", action="store_true", help="show identity, head and origin too")
    add_output_format(parser, "table", "json", "names")


def run(context: CommandContext, arguments: argparse.Namespace) -> "int | Coroutine[Any, Any, int]":
    """List datasets with what their data rest on; of another node, what it says of them."""
    addresses = [each for each in arguments.patterns if "://" in each]
    if addresses:
        if len(arguments.patterns) > 1:
            raise UsageError("name one node, and nothing beside it")
        return _list_proposed(context, addresses[0], arguments)
    chains = context.node.store
    records = select_datasets(chains, arguments.patterns) if arguments.patterns else list(chains.list_datasets())
    if arguments.output_format == "names":
        for record in records:
            context.console.line(record.name)
        return 0
    rows = [describe(each) for each in context.node.read_models.listing.summarize(records)]
    if arguments.output_format == "json":
        context.console.json(rows)
        return 0
    for row in rows:
        row["rows"] = f"{row['rows']:,}"
        row["watermark"] = row["watermark"] or "-"
        row["published"] = "yes" if row["published"] else "no"
        row["notChecked"] = ", ".join(row["notChecked"])
        row["waitsFor"] = ", ".join(row["waitsFor"])
        row["holds"] = ", ".join(row["holds"])
    columns = {
        "name": "NAME",
        "kind": "KIND",
        "blocks": ">BLOCKS",
        "rows": ">ROWS",
        "watermark": "WATERMARK",
        "trust": "RESTS ON",
    }
    if any(row["absentFiles"] for row in rows):
        columns["absentFiles"] = ">FILES NOT HERE"
    if any(row["notChecked"] for row in rows):
        columns["notChecked"] = "TAKEN UNCHECKED"
    if any(row["waitsFor"] for row in rows):
        columns["waitsFor"] = "WAITS FOR A WATERMARK OF"
    if any(row["holds"] for row in rows):
        columns["holds"] = "KEEPS THE LAST GOOD VERSION OF"
    if arguments.wide:
        columns |= {"id": "ID", "head": "HEAD", "origin": "ORIGIN", "published": "PUBLISHED"}
    context.console.table(
        rows,
        columns,
        empty="this node has no datasets yet; 'odf-node add FILE' creates one, 'odf-node pull URL' brings one",
        is_whole=arguments.wide,
    )
    return 0


async def _list_proposed(context: CommandContext, address: str, arguments: argparse.Namespace) -> int:
    here = {str(record.id): record for record in context.node.store.list_datasets()}
    proposed = await context.node.outgoing.list_proposed(address)
    if arguments.output_format == "names":
        for each in proposed:
            context.console.line(each.name)
        return 0
    rows = [
        {
            "name": each.name,
            "kind": each.kind,
            "blocks": each.head.sequence_number + 1,
            "saidToRestOn": each.trust,
            "here": here[each.dataset_id].name if each.dataset_id in here else None,
            "blocksHere": here[each.dataset_id].head.sequence_number + 1 if each.dataset_id in here else 0,
            "id": each.dataset_id,
            "head": each.head.block_hash,
        }
        for each in proposed
    ]
    if arguments.output_format == "json":
        context.console.json(rows)
        return 0
    columns = {
        "name": "NAME",
        "kind": "KIND",
        "blocks": ">BLOCKS",
        "saidToRestOn": "SAID TO REST ON",
        "here": "HERE AS",
    }
    if any(row["here"] for row in rows):
        columns["blocksHere"] = ">BLOCKS HERE"
    if arguments.wide:
        columns |= {"id": "ID", "head": "HEAD"}
    context.console.table(rows, columns, empty="it offers nothing to this node", is_whole=arguments.wide)
    return 0


def describe(summary: "ListedDataset") -> dict[str, Any]:
    """Give the summary of one dataset as plain values."""
    record = summary.record
    return {
        "name": record.name,
        "kind": record.kind.text,
        "blocks": record.head.sequence_number + 1,
        "rows": summary.rows,
        "watermark": str(summary.watermark) if summary.watermark else None,
        "trust": summary.ground,
        "absentFiles": summary.absent_files,
        "notChecked": list(summary.not_checked),
        "waitsFor": list(summary.waits_for),
        "holds": [each.name for each in summary.holds],
        "id": str(record.id),
        "head": str(record.head.hash),
        "origin": record.origin_url or "here",
        "published": record.published,
    }
