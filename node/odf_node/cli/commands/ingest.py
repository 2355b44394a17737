"""``odf-node ingest``: push files or standard input into a root dataset."""

import argparse
import os
import sys
from pathlib import Path
from typing import BinaryIO, Final

from odf_node.cli.context import CommandContext, parse_time, report_writing_time
from odf_node.cli.input_files import check_input
from odf_node.cli.parsing import add_dry_run, add_output_format
from odf_node.cli.reports import ReportLog
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError

TOPIC: Final = "make and read datasets"
HELP: Final = "push files or standard input into a root dataset"
EXAMPLES: Final = """\
ingest sales sales-2024-05.csv
ingest sales --stdin < sales.csv
ingest sales sales.csv --dry-run
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity of a root dataset with a push source")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="taken in one after the other")
    parser.add_argument("--stdin", action="store_true", help="read standard input instead of files")
    parser.add_argument("--source-name", metavar="NAME", help="which push source of the dataset to use")
    parser.add_argument(
        "--event-time", metavar="T", help="event time of rows that have none (default: the system time)"
    )
    parser.add_argument(
        "--key",
        metavar="KEY",
        help="take the file in once: the same file under the same key does nothing more, and is answered as the first "
        "time; another file under it is rejected",
    )
    add_dry_run(parser)
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Take the files in; each one is one slice, whole or not at all."""
    if arguments.stdin == bool(arguments.files):
        raise UsageError("name the files to take in, or say --stdin")
    if arguments.key is not None and (arguments.dry_run or len(arguments.files) > 1):
        raise UsageError("--key is for one file that is taken in, not for several or a --dry-run")
    for path in arguments.files:
        check_input(str(path))
    node = context.node
    ingestor = node.ingestor.rehearsing if arguments.dry_run else node.ingestor
    if not arguments.dry_run:
        node.sweeper.clean_up()
    record = get_dataset(node.store, arguments.dataset)
    event_time = parse_time(arguments.event_time, option="--event-time") if arguments.event_time else None
    sources: list[tuple[Path | BinaryIO, str]] = [(path, _text_of(path)) for path in arguments.files]
    if arguments.stdin:
        sources = [(sys.stdin.buffer, "standard input")]
    with ReportLog(context.console, arguments.output_format) as log:
        for file, shown_as in sources:
            system_time = report_writing_time(context, record)
            label = f"{record.name}: taking in {shown_as}"
            with (
                context.console.progress(label) as progress,
                node.engines.heard_by(lambda _text, count=None, label=label: progress.on_progress(label, count)),
            ):
                report = ingestor.push(
                    record,
                    file,
                    source_name=arguments.source_name,
                    shown_as=shown_as,
                    event_time=event_time,
                    system_time=system_time,
                    key=arguments.key,
                )
            record = report.record
            if not (report.up_to_date or report.is_repeated or arguments.dry_run):
                node.record("ingest", record.name, f"{report.counts.describe_whole()}, from {shown_as}")
            log.add(report)
    return 0


def _text_of(path: Path) -> str:
    """Give a path as text that can be kept: names of files are bytes, and need not be UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")
