"""``odf-node judge``: say what a bundle of evidence proves, offline, whoever sent it."""

import argparse
from pathlib import Path
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.cli.run import EXIT_CODES
from odf_protocol.errors import NotFoundError, RejectedError
from odf_protocol.judging import MAX_BUNDLE_BYTES, decode_bundle, judge

TOPIC: Final = "check and trust"
HELP: Final = "say what a bundle of evidence proves, offline"
EXAMPLES: Final = """\
judge evidence.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="a bundle, as 'odf-node evidence export' writes it")
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Judge it; no home, no network and no clock is used. The exit code is that of a rejection if guilt is proved."""
    try:
        with Path(arguments.file).open("rb") as file:
            raw = file.read(MAX_BUNDLE_BYTES + 1)
    except FileNotFoundError as error:
        raise NotFoundError(f"{arguments.file}: there is no such file") from error
    judgement, console = judge(decode_bundle(raw)), context.console
    if arguments.output_format == "json":
        console.json(
            {
                "guilty": [{"key": str(key), "dataset": str(dataset)} for key, dataset in judgement.guilty],
                "findings": [
                    {
                        "weight": found.weight.value,
                        "key": str(found.who) if found.who else None,
                        "dataset": str(found.dataset_id) if found.dataset_id else None,
                        "says": found.says,
                        "documents": list(found.documents),
                    }
                    for found in judgement.findings
                ],
            }
        )
    else:
        for key, dataset in judgement.guilty:
            console.text(f"PROVED: the key {key} contradicted itself about {dataset}")
        if not judgement.guilty:
            console.text("Nothing in this file proves that anybody contradicted himself.")
        for found in judgement.findings:
            who = f"{found.who}: " if found.who else ""
            console.line(f"  {found.weight.value:9}  {who}{found.says}")
    return EXIT_CODES[RejectedError] if judgement.guilty else 0
