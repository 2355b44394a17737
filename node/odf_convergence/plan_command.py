"""``odf-node plan``: what would be done, before it is: for what is behind now, a change of a dataset, or a manifest."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from odf_convergence.graph import DatasetGraph, GraphDataset, make_graph
from odf_convergence.home_graph import read_graph
from odf_convergence.manifests import add_snapshots
from odf_convergence.plan_texts import show_plan
from odf_convergence.planner import ConvergencePlan, Goal, make_plan
from odf_node.cli.context import CommandContext
from odf_node.cli.input_files import read_input
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UnknownDatasetError
from odf_protocol.manifest import DatasetSnapshot, parse_snapshots

TOPIC: Final = "care for this node"
HELP: Final = "show what would be done to bring datasets up to date: now, after a change, or with a manifest"
EXAMPLES: Final = """\
plan
plan sales
plan totals.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "subjects",
        nargs="*",
        metavar="DATASET|MANIFEST",
        help="datasets (names or %% patterns) that change, or files with manifests that are added; "
        "without any: what is behind now",
    )
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show the actions in order; no node and no source is asked, and nothing is changed."""
    graph, plan = make_dry_plan(context, arguments.subjects)
    show_plan(context.console, graph, plan, as_json=arguments.output_format == "json")
    return 0


def make_dry_plan(context: CommandContext, subjects: list[str]) -> tuple[DatasetGraph, ConvergencePlan]:
    """Plan what subjects lead to; without any, what is behind now.

    Raises:
        UnknownDatasetError: One is neither a dataset nor a file.
        MalformedError: A manifest cannot be read.
    """
    node = context.node
    snapshots: list[DatasetSnapshot] = []
    changed: list[str] = []
    for subject in subjects:
        try:
            changed += [str(each.id) for each in select_datasets(node.store, [subject])]
        except UnknownDatasetError:
            if not Path(subject).is_file():
                raise
            snapshots += list(_read(context, subject))
    graph = read_graph(node)
    graph, added = add_snapshots(graph, snapshots)
    now_ms = node.clock.now().unix_ms
    graph = make_graph(_change(each) if each.key in changed else each for each in graph.datasets.values())
    if not subjects:
        return graph, make_plan(graph, [Goal(key=key) for key in graph.order], now_ms)
    goals = [Goal(key=key, asks=True) for key in (*changed, *added)]
    goals += [Goal(key=key) for key in graph.list_below([*changed, *added])]
    return graph, make_plan(graph, goals, now_ms)


def _change(dataset: GraphDataset) -> GraphDataset:
    """Give a dataset as it would be with a block more."""
    head = 0 if dataset.head is None else dataset.head + 1
    return replace(dataset, head=head, newest=head, has_columns=True)


def _read(context: CommandContext, name: str) -> tuple[DatasetSnapshot, ...]:
    snapshots = parse_snapshots(read_input(name), source_name=name)
    context.node.creator.check_all(snapshots, replaces=True)
    return tuple(snapshots)
