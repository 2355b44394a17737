"""``odf-node graph``: what rests on what, at which versions, and how each dataset stands to it."""

import argparse
from typing import Any, Final

from odf_convergence.drawing import COLUMNS, describe_maker, to_plain, to_rows, write_dot, write_mermaid
from odf_convergence.graph import DatasetGraph, GraphDataset
from odf_convergence.home_graph import read_graph
from odf_convergence.impact import Impact, find_impact
from odf_convergence.judging import judge_all
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.naming import get_dataset, select_datasets
from odf_node.errors import UsageError
from odf_node.wording import count_of

TOPIC: Final = "care for this node"
HELP: Final = "show what rests on what, at which versions, and what of it is stale, held or waiting"
EXAMPLES: Final = """\
graph
graph totals -o mermaid
graph --impact sales
"""

_COST_COLUMNS: Final = {"name": "DATASET", "made": "MADE BY", "rows": ">ROWS READ", "seconds": ">SECONDS"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "datasets",
        nargs="*",
        metavar="DATASET",
        help="only these (names or %% patterns), and what they are linked with",
    )
    parser.add_argument(
        "--impact",
        metavar="DATASET",
        help="show what a change of this dataset makes stale, and what computing that took the last time",
    )
    add_output_format(parser, "text", "json", "dot", "mermaid")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show it; no node is asked and nothing is changed."""
    node = context.node
    if arguments.impact is not None:
        if arguments.datasets or arguments.output_format not in {"text", "json"}:
            raise UsageError("--impact is about the dataset that it names, as text or json")
        key = str(get_dataset(node.store, arguments.impact).id)
        _show_impact(context, find_impact(read_graph(node), [key]), as_json=arguments.output_format == "json")
        return 0
    chosen = [str(each.id) for each in select_datasets(node.store, arguments.datasets)]
    graph = read_graph(node)
    keys = _select(graph, chosen) if arguments.datasets else list(graph.order)
    judged = judge_all(graph)
    match arguments.output_format:
        case "json":
            context.console.json(
                {
                    "datasets": to_plain(graph, judged, keys),
                    "circles": [[graph.datasets[key].name for key in each] for each in graph.circles],
                }
            )
        case "dot":
            context.console.raw("".join(f"{line}\n" for line in write_dot(graph, judged, keys)))
        case "mermaid":
            context.console.raw("".join(f"{line}\n" for line in write_mermaid(graph, judged, keys)))
        case _:
            rows = list(to_rows(graph, judged, keys))
            context.console.table(rows, COLUMNS, empty="there are no datasets here")
            for number in range(len(graph.circles)):
                context.console.warn(f"datasets read each other in a circle: {graph.describe_circle(number)}")
    return 0


def _select(graph: DatasetGraph, chosen: list[str]) -> list[str]:
    linked = graph.list_above(chosen) | graph.list_below(chosen)
    return [key for key in graph.order if key in linked]


def _show_impact(context: CommandContext, impact: Impact, *, as_json: bool) -> None:
    if as_json:
        context.console.json(
            {
                "changed": [each.name for each in impact.changed],
                "own": [_cost_of(each) for each in impact.own],
                "others": [_cost_of(each) for each in impact.others],
                "seconds": impact.seconds,
                "unknown": impact.unknown,
            }
        )
        return
    rows = [
        {
            "name": each.name,
            "made": describe_maker(each),
            "rows": "-" if each.cost.rows is None else f"{each.cost.rows:,}",
            "seconds": "-" if each.cost.seconds is None else f"{each.cost.seconds:,.1f}",
        }
        for each in (*impact.own, *impact.others)
    ]
    names = ", ".join(each.name for each in impact.changed)
    context.console.table(rows, _COST_COLUMNS, empty=f"nothing rests on {names}")
    if rows:
        own, others = count_of(len(impact.own), "dataset"), count_of(len(impact.others), "dataset")
        unknown = f", {count_of(impact.unknown, 'dataset')} of which are not known" if impact.unknown else ""
        context.console.text(
            f"a change of {names} makes {own} here stale, which took {impact.seconds:,.1f} s the last time{unknown}; "
            f"{others} of other nodes"
        )


def _cost_of(each: GraphDataset) -> dict[str, Any]:
    return {"dataset": each.name, "id": each.key, "madeBy": describe_maker(each)} | {
        "rowsRead": each.cost.rows,
        "seconds": each.cost.seconds,
    }
