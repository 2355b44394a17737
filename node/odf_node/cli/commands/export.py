"""``odf-node export``: write datasets as files that any ODF program reads."""

import argparse
from typing import Final

from odf_node.adapters.layout_places import make_export_target
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, add_rate_limit
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UsageError
from odf_node.wording import count_of

TOPIC: Final = "exchange with others"
HELP: Final = "write datasets as files that any ODF program reads: folders, archives, buckets"
EXAMPLES: Final = """\
export sales totals --to /media/stick
export sales --to sales.tar
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name, identity or %% pattern")
    parser.add_argument(
        "--to",
        required=True,
        metavar="PLACE",
        help="a folder or place in a bucket (s3://bucket/prefix, s3+http://host:port/bucket/prefix), below which each "
        "dataset gets a folder of its name; or one file NAME.tar for one dataset",
    )
    add_rate_limit(parser)
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Write what is missing there, one dataset after the other."""
    node, console, place = context.node, context.console, arguments.to
    context.limit_transfers(rate=arguments.limit_rate)
    records = select_datasets(node.store, arguments.datasets)
    if place.endswith(".tar") and len(records) > 1:
        raise UsageError(f"an archive holds one dataset; name a folder to export {len(records)} of them")
    reports = []
    for record in records:
        target = make_export_target(place, record.name, node.home.folder)
        with console.progress(f"{record.name}: looking at {target.url}") as progress:
            report = await node.exporting.export(record, target, progress)
        reports.append(report)
        if arguments.output_format == "json":
            continue
        if report.new_blocks:
            console.text(
                f"{record.name}: wrote {count_of(report.new_blocks, 'block')} and "
                f"{count_of(report.written_objects, 'object')} ({report.written_bytes:,} bytes) to {report.url}"
            )
        else:
            console.text(f"{record.name}: {report.url} has everything already")
    if arguments.output_format == "json":
        console.json(
            [
                {
                    "dataset": report.record.name,
                    "to": report.url,
                    "head": str(report.record.head.hash),
                    "upToDate": not report.new_blocks,
                    "writtenBlocks": report.new_blocks,
                    "writtenObjects": report.written_objects,
                    "writtenBytes": report.written_bytes,
                }
                for report in reports
            ]
        )
    return 0
