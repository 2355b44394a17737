"""``odf-node pull``: ingest a root, run a derivative, or bring a dataset from another node."""

import argparse
from typing import Any

from odf_node.cli.context import Context, parse_time


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="DATASET|URL",
        help="a dataset of this node (name, identity, %% pattern), or where another node serves one "
        "(http://host:port/name, file:///folder/name)",
    )
    parser.add_argument("-a", "--all", action="store_true", help="every dataset of this node, inputs first")
    parser.add_argument("--as", dest="local_name", metavar="NAME", help="call it so in this node")
    parser.add_argument(
        "--policy",
        choices=["reexecute", "integrity", "unsigned"],
        help="what proof is enough for another's dataset "
        "(default: re-execute derivatives; signatures and hashes for roots)",
    )
    parser.add_argument("--identity", metavar="DID", help="refuse unless the dataset is this one (did:odf:...)")
    parser.add_argument("--set-watermark", metavar="T", help="state that no event before T is expected; pulls nothing")
    parser.add_argument("-o", "--output-format", choices=["text", "json"], default="text")


async def run(context: Context, arguments: argparse.Namespace) -> int:
    """Bring the named datasets up to date, one after the other."""
    from odf_node.cli.reports import print_reports
    from odf_node.errors import UsageError
    from odf_protocol.did import DatasetId
    from odf_protocol.policy import Policy

    if arguments.all == bool(arguments.sources):
        raise UsageError("name what to pull, or say --all")
    if arguments.local_name and len(arguments.sources) != 1:
        raise UsageError("--as names one dataset, so pull one")
    node = context.node
    node.clean_up()
    if arguments.set_watermark:
        watermark = parse_time(arguments.set_watermark, option="--set-watermark")
        reports: list[Any] = node.pulling.set_watermarks(arguments.sources, watermark)
        print_reports(context.console, reports, arguments.output_format)
        return 0
    wanted = node.pulling.plan(arguments.sources, everything=arguments.all)
    reports = []
    for target in wanted:
        with context.console.progress(f"{target.label}: starting") as progress:
            report = await node.pulling.pull(
                target,
                local_name=arguments.local_name,
                policy=Policy(arguments.policy) if arguments.policy else None,
                expected_id=DatasetId.parse(arguments.identity) if arguments.identity else None,
                progress=progress,
            )
        reports.append(report)
        if report.new_blocks:
            node.record("pull", report.record.name, f"block {report.record.head.sequence_number}")
        if arguments.output_format == "text":
            print_reports(context.console, [report], "text")
    if arguments.output_format == "json":
        print_reports(context.console, reports, "json")
    return 0
