"""``odf-node verify``: check chains, data and derivations again."""

import argparse
from dataclasses import replace

from odf_node.cli.context import Context
from odf_node.cli.parsing import add_output_format, whole_number


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="name, identity or %% pattern")
    parser.add_argument(
        "-r", "--recursive", action="store_true", help="verify the inputs too, before what is derived from them"
    )
    parser.add_argument(
        "--integrity", action="store_true", help="chain, signatures, hashes and rows only: re-execute nothing"
    )
    limits = parser.add_argument_group("limits of each re-executed step")
    limits.add_argument("--seconds", type=whole_number(1), metavar="N", help="time (default: 600)")
    limits.add_argument(
        "--memory", type=whole_number(256, 1 << 20), metavar="MIB", help="memory of the engine (default: 2048)"
    )
    add_output_format(parser, "text", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Verify each dataset; exit with the code of a refusal if any is not what it says."""
    from odf_node.cli.run import EXIT_CODES
    from odf_protocol.errors import RejectedError

    node, console = context.node, context.console
    if arguments.seconds:
        node.engines.limits = replace(node.engines.limits, wall_s=float(arguments.seconds))
    if arguments.memory:
        node.engines.limits = replace(node.engines.limits, memory_bytes=arguments.memory << 20)
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
