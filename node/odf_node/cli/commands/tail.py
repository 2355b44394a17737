"""``odf-node tail``: the newest rows of a dataset."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.missing_files import bring_files
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.rows import name_operations, write_rows
from odf_node.datasets.naming import get_dataset

TOPIC: Final = "make and read datasets"
HELP: Final = "show the newest rows of a dataset"
EXAMPLES: Final = """\
tail sales -n 20
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    parser.add_argument(
        "-n", "--num-records", type=whole_number(1), default=10, metavar="N", help="how many rows (default: 10)"
    )
    parser.add_argument(
        "-s", "--skip-records", type=whole_number(0), default=0, metavar="N", help="leave out the newest N rows"
    )
    add_output_format(parser, "table", "csv", "json", "ndjson")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Read only as many slices as the rows asked for need; no engine is started."""
    node = context.node
    record = get_dataset(node.store, arguments.dataset)
    hashes = node.reader.list_tail(record, count=arguments.num_records, skip=arguments.skip_records)
    absent = node.store.list_absent_objects(record.id) & set(hashes)
    if absent:
        with context.console.progress(f"{record.name}: fetching") as progress:
            bring_files(context, [(record, absent)], progress)
    rows = node.reader.tail(record, count=arguments.num_records, skip=arguments.skip_records)
    if arguments.output_format == "table":
        rows = name_operations(rows)
    write_rows(context.console, rows, arguments.output_format)
    return 0
