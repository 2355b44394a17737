"""``odf-node scrub``: read every object again and compare it with its name."""

import argparse
import time
from dataclasses import asdict
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.run import EXIT_CODES
from odf_node.wording import count_of
from odf_protocol.errors import CorruptError

TOPIC: Final = "care for this node"
HELP: Final = "read every object again and compare it with its name"
EXAMPLES: Final = """\
scrub
scrub --rate 20000000
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--rate", type=whole_number(0), default=0, metavar="BYTES", help="read at most so many bytes a second"
    )
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do one whole round; exit with the code of damage if any is found."""
    node, console = context.node, context.console

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return False

    damaged: list[str] = []
    state = node.scrubber.run(
        now=node.now, bytes_per_second=arguments.rate, wait=wait, on_damage=damaged.append, afresh=True
    )
    if arguments.output_format == "json":
        console.json(asdict(state))
    else:
        console.text(
            f"read {count_of(state.checked, 'object')} ({state.checked_bytes:,} bytes): {len(state.damaged):,} damaged"
        )
        for name in state.damaged:
            console.text(f"damaged: {name}")
        if state.damaged:
            console.note("'odf-node repair' fetches damaged objects again")
    return EXIT_CODES[CorruptError] if state.damaged else 0
