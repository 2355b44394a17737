"""``odf-node add``: create datasets from manifests."""

import argparse
import os
import sys
from pathlib import Path

from odf_node.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "manifests", nargs="+", metavar="FILE", help="DatasetSnapshot manifests, YAML or JSON ('-': standard input)"
    )
    parser.add_argument("-o", "--output-format", choices=["table", "json"], default="table")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Create every dataset that the manifests describe, or none where a mistake can be seen beforehand."""
    from odf_protocol.manifest import DatasetSnapshot, parse_snapshots

    snapshots: list[DatasetSnapshot] = []
    for name in arguments.manifests:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        snapshots.extend(parse_snapshots(text, source_name="standard input" if name == "-" else name))
    context.node.clean_up()
    records = context.node.creator.create_all(snapshots, system_time=context.node.now())
    for record in records:
        context.node.record("add", record.name, str(record.id))
    if arguments.output_format == "json":
        context.console.json(
            [{"name": record.name, "id": str(record.id), "kind": record.kind.text} for record in records]
        )
        return 0
    for record in records:
        context.console.text(f"added {record.kind.text.lower()} dataset {record.name} ({record.id})")
    return os.EX_OK
