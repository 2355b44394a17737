"""``odf-node backup``: copy this node while it runs."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Final

from odf_node.adapters.home_backup import back_up
from odf_node.adapters.key_backup import back_up_keys
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.wording import count_of

TOPIC: Final = "care for this node"
HELP: Final = "copy this node while it runs"
EXAMPLES: Final = """\
backup /media/stick/node --keys keys.tar
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "target",
        type=Path,
        metavar="FOLDER|FILE.tar",
        help="a folder, brought up to date if it is a backup; or one file",
    )
    parser.add_argument("--keys", type=Path, metavar="FILE", help="write the private keys to a file of their own")
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Copy the database, then every object that it names."""
    home, console = context.node.home, context.console
    with console.progress(f"{arguments.target}: copying") as progress:
        report = back_up(home.folder, arguments.target, progress.advance)
    keys = None if arguments.keys is None else back_up_keys(home.folder, arguments.keys)
    if arguments.output_format == "json":
        signer = None if report.signer is None else str(report.signer)
        console.json(asdict(report) | {"signer": signer, "keys": keys})
        return 0
    console.text(
        f"{arguments.target}: {count_of(report.datasets, 'dataset')}, {count_of(report.objects, 'object')}, "
        f"of which {report.copied:,} "
        f"({report.copied_bytes:,} bytes) were copied now"
    )
    if report.signer is None:
        console.note("this node has no key yet, so nothing shows later that it made the backup")
    else:
        console.note(
            f"signed by this node, {report.signer}: a restore needs that name, or --keys, to believe what it says"
        )
    if keys is None:
        console.note("private keys are not in it; --keys FILE writes them to a file of their own")
    else:
        console.text(f"{arguments.keys}: {keys:,} private keys: with this file anyone can sign in this node's name")
    return 0
