"""``odf-node gc``: free what nothing names."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_dry_run, add_output_format
from odf_node.errors import NodeBusyError
from odf_node.wording import count_of

TOPIC: Final = "care for this node"
HELP: Final = "remove files that no dataset needs: of deleted datasets, of rejected and stopped transfers"
EXAMPLES: Final = """\
gc --dry-run
gc
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_dry_run(parser)
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it, unless somebody is writing just now."""
    context.load_settings()
    report = context.node.sweeper.collect_garbage(dry_run=arguments.dry_run)
    if not report.ran:
        raise NodeBusyError("another command is writing; nothing was removed, try again when it has ended")
    if arguments.output_format == "json":
        context.console.json(
            {"objects": report.objects, "stagedFiles": report.staged_files, "freedBytes": report.freed_bytes}
        )
        return 0
    done = "would remove" if arguments.dry_run else "removed"
    context.console.text(
        f"{done} {count_of(report.objects, 'object')} and {report.staged_files:,} unfinished files or rejections, "
        f"{report.freed_bytes:,} bytes"
    )
    return 0
