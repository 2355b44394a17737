"""``odf-node cache``: free what can be had again."""

import argparse

from odf_node.cli.context import Context
from odf_node.cli.main import nested_options
from odf_node.cli.parsing import add_output_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    clear = actions.add_parser(
        "clear",
        help="remove downloads that stopped, objects that no dataset names, and what killed commands left",
        description="Remove downloads that stopped, objects that no dataset names, and what killed commands left.",
        parents=[nested_options()],
    )
    add_output_format(clear, "text", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Do it, unless somebody is writing just now."""
    from odf_node.errors import NodeBusyError

    report = context.node.clear_cache()
    if not report.ran:
        raise NodeBusyError("another command is writing; nothing was removed, try again when it has ended")
    if report.objects or report.staged_files:
        context.node.record("cache clear", "", f"{report.freed_bytes} bytes")
    if arguments.output_format == "json":
        context.console.json(
            {"objects": report.objects, "stagedFiles": report.staged_files, "freedBytes": report.freed_bytes}
        )
        return 0
    context.console.text(
        f"removed {report.objects:,} object{'' if report.objects == 1 else 's'} and {report.staged_files:,} "
        f"unfinished file{'' if report.staged_files == 1 else 's'}, {report.freed_bytes:,} bytes"
    )
    return 0
