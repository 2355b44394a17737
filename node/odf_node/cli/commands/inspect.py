"""``odf-node inspect``: look closely at one thing."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.inspections import definition, files, node, trust
from odf_node.cli.inspections.plans import show_plans
from odf_node.cli.parsing import add_actions, add_output_format, whole_number
from odf_node.datasets.naming import get_dataset

TOPIC: Final = "make and read datasets"
HELP: Final = "look closely at a dataset, block, data file or rejection"
EXAMPLES: Final = """\
inspect schema sales
inspect query totals
inspect plan totals
inspect plan totals.yaml
inspect lineage totals
inspect lineage totals -o mermaid
inspect trust totals
inspect histories sales
inspect refusals
inspect refusals 30b1a44fc23f
inspect node
inspect audit -n 20
inspect block block.bin
inspect data slice.parquet
"""

SUBJECTS: Final = {
    "DATASET": "name or identity",
    "ID": "one rejection, by the beginning of its id (default: list them all)",
    "DATASET|FILE": "a derivative, or a manifest of one that is not added yet (a file)",
    "FILE": "a file; one after the other where there are several",
}

_KINDS: Final = {
    "schema": ("DATASET", "the columns of a dataset"),
    "query": ("DATASET", "the declared query of a derivative"),
    "plan": (
        "DATASET|FILE",
        "what a query is, what its next step reads, or what would pass; of a root, its newest ingest",
    ),
    "lineage": ("DATASET", "what a dataset is derived from; -o dot and -o mermaid draw it, down to the roots"),
    "trust": ("DATASET", "what the data of a dataset rest on: every acceptance, with its grounds"),
    "histories": ("DATASET", "histories of a dataset that were replaced by others, and their blocks"),
    "refusals": ("ID", "what peers offered and this node rejected"),
    "node": ("", "who this node is to others: what they name in their policies"),
    "audit": ("", "what was done with this node, newest first"),
    "block": ("FILE", "a block file as annotated bytes and as YAML"),
    "data": ("FILE", "a Parquet file: schema, rows, hashes"),
}
"""What can be looked at: what names it, and the line of the help."""

_DRAWN: Final = ("dot", "mermaid")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the things that can be looked at."""
    lines = {name: line for name, (_, line) in _KINDS.items()}
    for name, child in add_actions(parser, lines, dest="kind", metavar="WHAT", title="what to look at").items():
        argument = _KINDS[name][0]
        if name == "audit":
            child.add_argument(
                "-n", "--limit", type=whole_number(1), default=50, metavar="N", help="the newest N lines (default: 50)"
            )
        elif argument:
            nargs = "+" if argument == "FILE" else "?" if argument == "ID" else None
            child.add_argument("subject", nargs=nargs, metavar=argument, help=SUBJECTS[argument])
        add_output_format(child, "text", "json", *(_DRAWN if name == "lineage" else ()))
        child.add_argument(
            "--json", dest="output_format", action="store_const", const="json", help="the same as -o json"
        )


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show it."""
    as_json = arguments.output_format == "json"
    of_datasets = {
        "schema": definition.show_schema,
        "query": definition.show_query,
        "lineage": definition.show_lineage,
        "trust": trust.show_trust,
        "histories": trust.show_histories,
    }
    match arguments.kind:
        case "node":
            node.show_node(context, as_json=as_json)
        case "audit":
            node.show_audit(context, arguments.limit, as_json=as_json)
        case "refusals":
            node.show_rejections(context, arguments.subject, as_json=as_json)
        case "block":
            files.show_blocks(context, arguments.subject, as_json=as_json)
        case "data":
            files.show_data(context, arguments.subject, as_json=as_json)
        case "plan":
            show_plans(context, arguments.subject, as_json=as_json)
        case "lineage" if arguments.output_format in _DRAWN:
            record = get_dataset(context.node.store, arguments.subject)
            definition.draw_lineage(context, record, arguments.output_format)
        case kind:
            of_datasets[kind](context, get_dataset(context.node.store, arguments.subject), as_json=as_json)
    return 0
