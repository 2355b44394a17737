"""``odf-node verify``: check chains, data and derivations again."""

import argparse

from odf_node.cli.context import Context
from odf_node.cli.parsing import add_output_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name, identity or %% pattern")
    parser.add_argument(
        "-r", "--recursive", action="store_true", help="verify the inputs too, before what is derived from them"
    )
    parser.add_argument(
        "--integrity", action="store_true", help="chain, signatures, hashes and rows only: re-execute nothing"
    )
    add_output_format(parser, "text", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Verify each dataset; exit with the code of a refusal if any is not what it says."""
    from odf_node.cli.run import EXIT_CODES
    from odf_protocol.errors import RejectedError

    node, console = context.node, context.console
    findings = []
    for record in node.verifier.select(arguments.datasets, recursive=arguments.recursive):
        with console.progress(f"{record.name}: reading the chain") as progress:
            finding = node.verifier.verify(record, replay=not arguments.integrity, say=progress.say)
        findings.append(finding)
        if arguments.output_format == "text":
            for line in finding.describe():
                console.text(line)
    if arguments.output_format == "json":
        console.json([finding.to_json() for finding in findings])
    return 0 if all(finding.is_valid for finding in findings) else EXIT_CODES[RejectedError]
