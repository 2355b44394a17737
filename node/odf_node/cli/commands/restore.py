"""``odf-node restore``: make a node of a backup."""

import argparse
from dataclasses import asdict
from pathlib import Path

from odf_node.adapters.home_backup import restore, restore_keys
from odf_node.cli.context import Context
from odf_node.cli.parsing import add_output_format
from odf_node.wording import count_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("source", type=Path, metavar="FOLDER|FILE.tar", help="what 'odf-node backup' wrote")
    parser.add_argument("--keys", type=Path, metavar="FILE", help="take the private keys from there")
    add_output_format(parser, "text", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Fill an empty home; every object is compared with its name."""
    home, console = context.node.home, context.console
    with console.progress(f"{home.path}: restoring") as progress:
        report = restore(home, arguments.source, progress.advance)
    keys = None if arguments.keys is None else restore_keys(home, arguments.keys)
    if arguments.output_format == "json":
        console.json(asdict(report) | {"keys": keys})
        return 0
    console.text(
        f"{home.path}: {count_of(report.datasets, 'dataset')} and {count_of(report.objects, 'object')} are back"
    )
    if keys is None:
        console.note("without --keys FILE this node cannot continue its own datasets")
    return 0
