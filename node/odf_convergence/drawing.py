"""A graph as lines of a table, as plain values, and as a picture for Graphviz or Mermaid."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from odf_convergence.graph import DatasetGraph, GraphDataset
from odf_convergence.judging import Assessment, DatasetState
from odf_node.derive.lineage import dot_text, mermaid_text

_COLOURS: Final = {
    DatasetState.UP_TO_DATE: "#c8e6c9",
    DatasetState.STALE: "#fff59d",
    DatasetState.RUNNING: "#bbdefb",
    DatasetState.HELD: "#ffcc80",
    DatasetState.WAITING: "#e0e0e0",
    DatasetState.FAILED: "#ef9a9a",
}

COLUMNS: Final = {"name": "DATASET", "made": "MADE BY", "state": "STATE", "why": "WHY", "reads": "READS"}


def to_rows(graph: DatasetGraph, judged: Mapping[str, Assessment], keys: Iterable[str]) -> Iterator[dict[str, str]]:
    """Give datasets as rows of a table for people."""
    for key in keys:
        dataset, found = graph.datasets[key], judged[key]
        reads = (_describe_read(graph, dataset, number) for number in range(len(dataset.inputs)))
        yield {
            "name": dataset.name,
            "made": describe_maker(dataset),
            "state": str(found.state),
            "why": found.why,
            "reads": ", ".join(reads),
        }


def to_plain(graph: DatasetGraph, judged: Mapping[str, Assessment], keys: Iterable[str]) -> list[dict[str, Any]]:
    """Give datasets as plain values, for scripts."""
    return [_plain(graph.datasets[key], judged[key]) for key in keys]


def _plain(dataset: GraphDataset, found: Assessment) -> dict[str, Any]:
    since = dict(found.since)
    return {
        "dataset": dataset.name,
        "id": dataset.key,
        "kind": None if dataset.kind is None else dataset.kind.text,
        "own": dataset.is_own,
        "place": dataset.place or None,
        "head": dataset.head,
        "rows": dataset.rows,
        "engine": dataset.engine or None,
        "query": dataset.query or None,
        "state": str(found.state),
        "why": found.why or None,
        "inputs": [
            {"id": item.key, "alias": item.alias, "takenBlock": item.taken, "staleSinceBlock": since.get(item.key)}
            for item in dataset.inputs
        ],
        "seconds": dataset.cost.seconds,
        "rowsRead": dataset.cost.rows,
    }


def describe_maker(dataset: GraphDataset) -> str:
    """Say who or what makes a dataset: an engine here, a source, or another node."""
    if dataset.head is None:
        return dataset.place or "unknown"
    if not dataset.is_own:
        return dataset.place or "another node"
    if dataset.is_derivative:
        return dataset.engine or "no query"
    return dataset.place or "what is sent to it"


def _describe_read(graph: DatasetGraph, dataset: GraphDataset, number: int) -> str:
    item = dataset.inputs[number]
    source = graph.datasets[item.key]
    taken = "nothing yet" if item.taken is None else f"block {item.taken:,}"
    return f"{source.name} ({taken}{'' if source.head is None else f' of {source.head:,}'})"


def write_dot(graph: DatasetGraph, judged: Mapping[str, Assessment], keys: Iterable[str]) -> Iterator[str]:
    """Write a graph for Graphviz, data flowing to the right."""
    numbers = {key: number for number, key in enumerate(keys)}
    yield "digraph convergence {"
    yield "  rankdir=LR;"
    yield "  node [shape=box, style=filled];"
    for key, number in numbers.items():
        label = r"\n".join(dot_text(line) for line in _lines(graph.datasets[key], judged[key]))
        yield f'  n{number} [label="{label}", fillcolor="{_COLOURS[judged[key].state]}"];'
    for source, target, label in _edges(graph, numbers):
        yield f'  n{numbers[source]} -> n{numbers[target]} [label="{dot_text(label)}"];'
    yield "}"


def write_mermaid(graph: DatasetGraph, judged: Mapping[str, Assessment], keys: Iterable[str]) -> Iterator[str]:
    """Write a graph for Mermaid, data flowing to the right."""
    numbers = {key: number for number, key in enumerate(keys)}
    yield "flowchart LR"
    for key, number in numbers.items():
        label = "<br/>".join(mermaid_text(line) for line in _lines(graph.datasets[key], judged[key]))
        yield f'  n{number}["{label}"]'
        yield f"  style n{number} fill:{_COLOURS[judged[key].state]}"
    for source, target, label in _edges(graph, numbers):
        text = f'|"{mermaid_text(label)}"|' if label else ""
        yield f"  n{numbers[source]} -->{text} n{numbers[target]}"


def _edges(graph: DatasetGraph, numbers: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    for key in numbers:
        for item in graph.datasets[key].inputs:
            if item.key in numbers:
                yield item.key, key, "" if item.taken is None else f"block {item.taken:,}"


def _lines(dataset: GraphDataset, found: Assessment) -> list[str]:
    return [dataset.name, describe_maker(dataset), str(found.state)]
