"""What a dataset is derived from, all the way down, as a graph that other programs draw (PLAN-18)."""

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from odf_node.datasets.chains import find_partial, load_view
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class LineageInput:
    """An input of a derivative: which dataset, and what the query calls it."""

    dataset_id: DatasetId
    alias: str


@dataclass(frozen=True, slots=True)
class LineageDataset:
    """A dataset in a lineage.

    ``name``, ``trust``: empty where it is not in this node. ``engine``: None for a root, and where it is not here.
    """

    dataset_id: DatasetId
    name: str = ""
    trust: str = ""
    engine: str | None = None
    inputs: tuple[LineageInput, ...] = ()


Find = Callable[[DatasetId], DatasetRecord | None]
"""Gives the record of a dataset, by the name and as far as whoever asks knows it."""


def read_lineage(
    store: MetadataStore, record: DatasetRecord, *, find: Find | None = None, most: int = sys.maxsize
) -> list[LineageDataset]:
    """Return a dataset and everything that it is derived from, each once, the dataset itself first.

    Args:
        store: What the home keeps.
        record: The dataset.
        find: Which datasets there are for whoever asks; None: all.
        most: How many to return at most, those nearest to the dataset.
    """
    found: dict[DatasetId, LineageDataset] = {}
    waiting = deque([record.id])
    while waiting and len(found) < most:
        dataset_id = waiting.popleft()
        if dataset_id not in found:
            found[dataset_id] = _read(store, dataset_id, find or store.find_dataset)
            waiting += [each.dataset_id for each in found[dataset_id].inputs]
    return list(found.values())


def list_readers(
    store: MetadataStore, records: Iterable[DatasetRecord], dataset_id: DatasetId, *, find: Find
) -> list[LineageDataset]:
    """List those of some datasets that are derived from a dataset directly."""
    read = (_read(store, each.id, find) for each in records if each.kind is DatasetKind.DERIVATIVE)
    return [each for each in read if any(item.dataset_id == dataset_id for item in each.inputs)]


def _read(store: MetadataStore, dataset_id: DatasetId, find: Find) -> LineageDataset:
    record = find(dataset_id)
    if record is None:
        return LineageDataset(dataset_id)
    declared = load_view(store, dataset_id).transform
    trust = record.trust.in_words(find_partial(store, record))
    if declared is None:
        return LineageDataset(dataset_id, record.name, trust)
    inputs = (LineageInput(DatasetId.parse(each.dataset_ref), each.alias or "") for each in declared.inputs)
    return LineageDataset(dataset_id, record.name, trust, declared.transform.engine, tuple(inputs))


def write_dot(lineage: list[LineageDataset]) -> Iterator[str]:
    """Write a lineage for Graphviz, data flowing to the right."""
    numbers = {each.dataset_id: number for number, each in enumerate(lineage)}
    yield "digraph lineage {"
    yield "  rankdir=LR;"
    yield "  node [shape=box];"
    for each in lineage:
        label = r"\n".join(dot_text(line) for line in _lines(each))
        yield f'  n{numbers[each.dataset_id]} [label="{label}"];'
    for each in lineage:
        for item in each.inputs:
            source, target = numbers[item.dataset_id], numbers[each.dataset_id]
            yield f'  n{source} -> n{target} [label="{dot_text(item.alias)}"];'
    yield "}"


def write_mermaid(lineage: list[LineageDataset]) -> Iterator[str]:
    """Write a lineage for Mermaid, data flowing to the right."""
    numbers = {each.dataset_id: number for number, each in enumerate(lineage)}
    yield "flowchart LR"
    for each in lineage:
        label = "<br/>".join(mermaid_text(line) for line in _lines(each))
        yield f'  n{numbers[each.dataset_id]}["{label}"]'
    for each in lineage:
        for item in each.inputs:
            alias = f'|"{mermaid_text(item.alias)}"|' if item.alias else ""
            yield f"  n{numbers[item.dataset_id]} -->{alias} n{numbers[each.dataset_id]}"


def _lines(each: LineageDataset) -> list[str]:
    if not each.name:
        return [str(each.dataset_id), "not in this node"]
    return [each.name, "root" if each.engine is None else f"derived by {each.engine}", each.trust]


def dot_text(text: str) -> str:
    """Write a text inside quotation marks of Graphviz."""
    return _CONTROLS.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')


def mermaid_text(text: str) -> str:
    """Write a text inside quotation marks of Mermaid."""
    # Mermaid has its own escapes: a number sign, a name or a number, a semicolon.
    escaped = _CONTROLS.sub(" ", text).replace("#", "#35;").replace("&", "#amp;")
    return escaped.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
