"""``odf-node doctor``: what this machine offers, what is missing, and how to fix it."""

import argparse
from dataclasses import asdict
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.machine import examine_machine

TOPIC: Final = "care for this node"
HELP: Final = "show what this machine offers, what is missing and how to fix it"
EXAMPLES: Final = """\
doctor
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_output_format(parser, "table", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Try everything that the node relies on; exit with 1 if something is missing."""
    findings = examine_machine(context.home)
    if arguments.output_format == "json":
        context.console.json([asdict(finding) for finding in findings])
    else:
        rows = [{"state": "ok" if item.ok else "MISSING", "what": item.what, "found": item.found} for item in findings]
        context.console.table(rows, {"state": "", "what": "WHAT", "found": "FOUND"})
        for item in findings:
            if not item.ok:
                context.console.text(f"\n{item.what}: {item.fix}")
    return 0 if all(item.ok for item in findings) else 1
