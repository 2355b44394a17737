"""``odf-node locate``: find where a node's slice differs from a file, by a few hashes."""

import argparse
from pathlib import Path
from typing import Final

from odf_locate.tree_queries import locate_difference
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.cli.run import EXIT_CODES
from odf_node.rows.slice_process import SliceProcess
from odf_node.wording import count_of
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.limits import MAX_TREE_LEAVES, MAX_TREE_SCHEMA_BYTES
from odf_protocol.multihash import Multihash

TOPIC: Final = "check and trust"
HELP: Final = "find where a node's slice differs from a file, by a few hashes"
EXAMPLES: Final = """\
locate prices.parquet http://peer.example:8080/prices --slice f16205603b882e
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="our version: a Parquet file with the same columns")
    parser.add_argument("url", metavar="URL", help="the dataset at the other node (http://host:port/name)")
    parser.add_argument(
        "--slice",
        dest="slice_hash",
        required=True,
        metavar="HASH",
        help="physical hash of its slice, which a rejection and 'odf-node log' name",
    )
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Ask, and say which rows of which columns differ; the exit code is that of a rejection where any do."""
    path = Path(arguments.file)
    with context.console.progress(f"hashing {path.name}"), SliceProcess() as reader:
        mine = reader.summarise(path, max_leaves=MAX_TREE_LEAVES, max_schema_bytes=MAX_TREE_SCHEMA_BYTES)
    found = await locate_difference(arguments.url, Multihash.parse(arguments.slice_hash), mine)
    rows = [{"column": each.column, "from": each.start, "to": each.stop - 1} for each in found.differences]
    if arguments.output_format == "json":
        context.console.json(
            {
                "differences": rows,
                "complete": found.is_complete,
                "requests": found.requests,
                "answerBytes": found.answer_bytes,
            }
        )
    else:
        columns = {"column": "COLUMN", "from": ">FROM ROW", "to": ">TO ROW"}
        context.console.table(rows, columns, empty="the two are equal")
        context.console.note(f"{count_of(found.requests, 'request')}, {found.answer_bytes:,} bytes of answers")
    return EXIT_CODES[RejectedError] if rows else 0
