"""``odf-node verify``: check chains, data and derivations again, held here or at an address."""

import argparse
import time
from dataclasses import replace
from typing import Any, Final

from odf_node.audits import list_tasks
from odf_node.cli.audit_page import render_audit
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.run import EXIT_CODES
from odf_node.errors import UsageError
from odf_node.trust.auditing import publish_finding, run_tasks
from odf_node.trust.verifying import VerifyOptions
from odf_protocol.errors import RejectedError

TOPIC: Final = "check and trust"
HELP: Final = "check chains, data and derivations again"
EXAMPLES: Final = """\
verify sales totals
verify totals --recursive --attest
verify http://peer.example:8080/prices
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "datasets", nargs="*", metavar="DATASET|URL", help="name, identity, %% pattern, or where another node serves it"
    )
    parser.add_argument(
        "-r", "--recursive", action="store_true", help="verify the inputs too, before what is derived from them"
    )
    parser.add_argument(
        "--integrity", action="store_true", help="chain, signatures, hashes and rows only: re-execute nothing"
    )
    parser.add_argument("--all", action="store_true", help="verify again what was verified before")
    parser.add_argument(
        "--sample", type=whole_number(1), metavar="N", help="read only N slices of each piece, chosen at random"
    )
    parser.add_argument(
        "-j", "--jobs", type=whole_number(1, 64), default=1, metavar="N", help="so many datasets at once (default: 1)"
    )
    parser.add_argument("--attest", action="store_true", help="sign what was found and serve it with the dataset")
    parser.add_argument(
        "--watch", type=whole_number(1), metavar="SECONDS", help="go on, looking for new blocks so often (Ctrl-C ends)"
    )
    limits = parser.add_argument_group("limits of each re-executed step")
    limits.add_argument("--seconds", type=whole_number(1), metavar="N", help="time (default: 600)")
    limits.add_argument(
        "--memory", type=whole_number(256, 1 << 20), metavar="MIB", help="memory of the engine (default: 2048)"
    )
    add_output_format(parser, "text", "json", "html")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Verify each dataset; exit with the code of a rejection if any is not what it says."""
    if not arguments.datasets:
        raise UsageError("name what to verify; '%' is every dataset of this node")
    node = context.node
    if arguments.seconds:
        node.engines.limits = replace(node.engines.limits, wall_s=float(arguments.seconds))
    if arguments.memory:
        node.engines.limits = replace(node.engines.limits, memory_bytes=arguments.memory << 20)
    is_valid = True
    while True:
        findings = _verify_once(context, arguments)
        is_valid = is_valid and all(finding.is_valid for finding in findings)
        if arguments.watch is None:
            return 0 if is_valid else EXIT_CODES[RejectedError]
        time.sleep(arguments.watch)


def _verify_once(context: CommandContext, arguments: argparse.Namespace) -> list[Any]:
    node, console = context.node, context.console
    options = VerifyOptions(replay=not arguments.integrity, everything=arguments.all, sample=arguments.sample)
    findings = []
    tasks = list_tasks(
        node, arguments.datasets, recursive=arguments.recursive, options=options, own_nodes=arguments.jobs > 1
    )
    with console.progress("verifying") as progress:
        for finding in run_tasks(tasks, arguments.jobs, progress.on_progress):
            findings.append(finding)
            if arguments.attest and publish_finding(finding, node.store, node.keys, now=node.now()):
                node.record("verify --attest", finding.name, "success" if finding.is_valid else "divergence")
            is_news = arguments.watch is None or finding.last is not None or not finding.is_valid
            if arguments.output_format == "text" and is_news:
                for line in finding.describe():
                    console.line(line)
    if arguments.output_format == "json":
        console.json([finding.to_json() for finding in findings])
    if arguments.output_format == "html":
        console.raw(render_audit([finding.to_json() for finding in findings], str(node.now())))
    return findings
