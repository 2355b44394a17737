"""The state of each dataset of a graph: up to date, stale, running, held, waiting, failed. Pure.

Source: clauses CONVERGE-2 to CONVERGE-4 in ``spec/plug-ins/convergence.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from odf_convergence.graph import DatasetGraph, GraphDataset, ReadInput


class DatasetState(StrEnum):
    """How a dataset stands to what it rests on."""

    UP_TO_DATE = "up to date"
    STALE = "stale"
    """Something can be done for it here, now or after what it rests on."""
    RUNNING = "running"
    HELD = "held"
    """A rule of this node keeps it from newer versions of an input."""
    WAITING = "waiting"
    """Something has to happen elsewhere, or at an input, first."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The state of a dataset.

    Attributes:
        state: How it stands.
        why: In words; empty where there is nothing to say.
        is_due: Something can be done for it at once.
        since: Inputs with versions that it has not read: key, and number of the first such block.
    """

    state: DatasetState
    why: str = ""
    is_due: bool = False
    since: tuple[tuple[str, int], ...] = ()


_FINE = Assessment(DatasetState.UP_TO_DATE)


def judge_all(graph: DatasetGraph) -> dict[str, Assessment]:
    """Find the state of every dataset, inputs before what reads them."""
    found: dict[str, Assessment] = {}
    for key in graph.order:
        found[key] = _judge(graph, graph.datasets[key], found)
    return found


def _judge(graph: DatasetGraph, dataset: GraphDataset, known: Mapping[str, Assessment]) -> Assessment:
    if dataset.is_running:
        return Assessment(DatasetState.RUNNING)
    if dataset.head is None:
        return Assessment(DatasetState.WAITING, "it is not in this node: pull it, or what reads it cannot go on")
    if dataset.key in graph.circle_of:
        circle = graph.describe_circle(graph.circle_of[dataset.key])
        return Assessment(DatasetState.HELD, f"datasets read each other in a circle: {circle}")
    judged = _judge_own(graph, dataset) if dataset.is_own else _judge_pulled(graph, dataset)
    if dataset.failed is not None and judged.is_due:
        return Assessment(DatasetState.FAILED, dataset.failed.text, is_due=True, since=judged.since)
    if judged.state is not DatasetState.UP_TO_DATE:
        return judged
    if dataset.reported:
        return Assessment(DatasetState.FAILED, dataset.reported)
    return _judge_by_inputs(graph, dataset, known)


def _judge_own(graph: DatasetGraph, dataset: GraphDataset) -> Assessment:
    """Compare a dataset of this node with what its inputs have here."""
    since: list[tuple[str, int]] = []
    new: list[str] = []
    held = ""
    for item in dataset.inputs:
        source = graph.datasets[item.key]
        if source.head is None:
            return Assessment(DatasetState.WAITING, f"its input {source.name} is not in this node: odf-node pull it")
        last = find_readable(source, item)
        if item.limit is not None and _is_behind(item.taken, source.newest) and not held:
            held = f"{source.name}: {item.limit.why}"
        if _is_behind(item.taken, last):
            assert last is not None
            first = 0 if item.taken is None else item.taken + 1
            since.append((item.key, first))
            new.append(_describe_new(source, first, last))
    if not dataset.is_derivative and not since:
        return _FINE
    without = next((s for s in (graph.datasets[item.key] for item in dataset.inputs) if not s.has_columns), None)
    if without is not None:
        return Assessment(DatasetState.WAITING, f"its input {without.name} has had no rows yet")
    if dataset.is_settled:
        since, new = [], []
    if since:
        return Assessment(DatasetState.STALE, "; ".join(new), is_due=True, since=tuple(since))
    if held:
        # Rules judge new versions when a pull asks them to: once at these versions.
        return Assessment(DatasetState.HELD, held, is_due=not dataset.is_settled)
    if not dataset.has_columns and not dataset.is_settled:
        return Assessment(DatasetState.STALE, "it has made no step yet", is_due=True)
    return _FINE


def _judge_pulled(graph: DatasetGraph, dataset: GraphDataset) -> Assessment:
    """Compare a dataset of another node with what is announced, and with what its inputs have here."""
    assert dataset.head is not None
    owner = dataset.place or "its owner"
    if dataset.announced is not None and dataset.announced > dataset.head:
        text = f"{owner} has block {dataset.announced:,}, this node block {dataset.head:,}"
        return Assessment(DatasetState.STALE, text, is_due=True)
    for item in dataset.inputs:
        source = graph.datasets[item.key]
        if source.head is not None and _is_behind(item.taken, source.newest):
            assert source.newest is not None
            first = 0 if item.taken is None else item.taken + 1
            text = f"{owner} has not read {_describe_new(source, first, source.newest)}"
            return Assessment(DatasetState.WAITING, text, since=((item.key, first),))
    return _FINE


def _judge_by_inputs(graph: DatasetGraph, dataset: GraphDataset, known: Mapping[str, Assessment]) -> Assessment:
    """Say of a dataset that has read all there is whether there will be more, or something keeps it back."""
    for wanted in (DatasetState.STALE, DatasetState.RUNNING):
        for item in dataset.inputs:
            if (judged := known.get(item.key)) is not None and judged.state is wanted:
                name = graph.datasets[item.key].name
                text = f"its input {name} is {judged.state}"
                return Assessment(DatasetState.STALE if dataset.is_own else DatasetState.WAITING, text)
    for item in dataset.inputs:
        if (judged := known.get(item.key)) is not None and judged.state is not DatasetState.UP_TO_DATE:
            return Assessment(DatasetState.WAITING, f"its input {graph.datasets[item.key].name} is {judged.state}")
    return _FINE


def find_readable(source: GraphDataset, item: ReadInput) -> int | None:
    """Return the number of the newest block with rows or a watermark that may be read of an input."""
    if item.limit is None or source.newest is None:
        return source.newest
    return None if item.limit.upto is None else min(source.newest, item.limit.upto)


def _is_behind(taken: int | None, newest: int | None) -> bool:
    return newest is not None and (taken is None or taken < newest)


def _describe_new(source: GraphDataset, first: int, last: int) -> str:
    blocks = f"block {last:,}" if last <= first else f"blocks {first:,} to {last:,}"
    return f"{blocks} of {source.name}"
