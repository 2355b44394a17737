"""``odf-node repair``: find what is missing or damaged in this node's data, and fetch it again."""

import argparse
from typing import TYPE_CHECKING, Final

from odf_node.cli.context import CommandContext, parse_place
from odf_node.cli.parsing import add_output_format, add_parallel, add_rate_limit
from odf_node.cli.run import EXIT_CODES
from odf_node.datasets.naming import select_datasets
from odf_node.wording import count_of
from odf_protocol.errors import CorruptError

if TYPE_CHECKING:
    from odf_node.upkeep.repairing import RepairReport

TOPIC: Final = "care for this node"
HELP: Final = "find what is missing or damaged in this node's data, and fetch it again"
EXAMPLES: Final = """\
repair
repair sales --from http://peer.example:8080
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="name, identity or %% pattern (default: all)")
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="URL|FOLDER|FILE",
        help="ask there first (may be repeated); then where the dataset came from or was pushed to",
    )
    add_rate_limit(parser)
    add_parallel(parser)
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Repair one dataset after the other; exit with the code of damage if anything is left."""
    node, console = context.node, context.console
    context.limit_transfers(rate=arguments.limit_rate, parallel=arguments.parallel)
    records = select_datasets(node.store, arguments.datasets) if arguments.datasets else node.store.list_datasets()
    sources = [parse_place(source) for source in arguments.sources]
    reports = []
    for record in records:
        with console.progress(f"{record.name}: starting") as progress:
            report = await node.repairing.repair(record, sources, progress)
        reports.append(report)
        if arguments.output_format == "text":
            for line in describe(report):
                console.line(line)
    if arguments.output_format == "json":
        console.json([to_json(report) for report in reports])
    return 0 if all(report.is_whole for report in reports) else EXIT_CODES[CorruptError]


def describe(report: "RepairReport") -> list[str]:
    """Say in lines what a report says."""
    name = report.record.name
    lines = []
    if report.mended_blocks or report.mended_objects:
        lines.append(
            f"{name}: fixed {count_of(report.mended_blocks, 'block')} and {count_of(report.mended_objects, 'object')} "
            f"({report.mended_bytes:,} bytes) from {', '.join(report.sources)}"
        )
    if report.is_whole:
        lines.append(
            f"{name}: whole: {count_of(report.checked_blocks, 'block')}, {count_of(report.checked_objects, 'object')}"
        )
        if report.absent_objects:
            lines.append(f"{name}: {report.absent_objects:,} of these objects are not here by choice")
        return lines
    lines += [f"{name}: NOT FIXED: {text}" for text in report.left]
    lines += [f"{name}: {text}" for text in dict.fromkeys(report.failures)]
    if not report.sources and not report.failures:
        lines.append(f"{name}: no source is known; name one with --from")
    return lines


def to_json(report: "RepairReport") -> dict[str, object]:
    """Give a report as plain values."""
    return {
        "dataset": report.record.name,
        "whole": report.is_whole,
        "checkedBlocks": report.checked_blocks,
        "checkedObjects": report.checked_objects,
        "absentObjects": report.absent_objects,
        "mendedBlocks": report.mended_blocks,
        "mendedObjects": report.mended_objects,
        "mendedBytes": report.mended_bytes,
        "sources": list(report.sources),
        "left": report.left,
        "failures": list(dict.fromkeys(report.failures)),
    }
