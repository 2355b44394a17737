"""What a dataset is derived from, all the way down, as a graph that other programs draw (PLAN-18)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odf_node.datasets.chains import load_view
from odf_node.datasets.grounds import find_partial
from odf_node.ports import DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_protocol.did import DatasetId

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


def read_lineage(chains: ChainStore, record: DatasetRecord) -> list[LineageDataset]:
    """Return a dataset and everything that it is derived from, each once, the dataset itself first."""
    found: dict[DatasetId, LineageDataset] = {}
    waiting = [record.id]
    while waiting:
        dataset_id = waiting.pop(0)
        if dataset_id not in found:
            found[dataset_id] = _read(chains, dataset_id)
            waiting += [each.dataset_id for each in found[dataset_id].inputs]
    return list(found.values())


def _read(chains: ChainStore, dataset_id: DatasetId) -> LineageDataset:
    record = chains.find_dataset(dataset_id)
    if record is None:
        return LineageDataset(dataset_id)
    declared = load_view(chains, dataset_id).transform
    trust = record.trust.in_words(find_partial(chains, record))
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
        label = r"\n".join(_dot_text(line) for line in _lines(each))
        yield f'  n{numbers[each.dataset_id]} [label="{label}"];'
    for each in lineage:
        for item in each.inputs:
            source, target = numbers[item.dataset_id], numbers[each.dataset_id]
            yield f'  n{source} -> n{target} [label="{_dot_text(item.alias)}"];'
    yield "}"


def write_mermaid(lineage: list[LineageDataset]) -> Iterator[str]:
    """Write a lineage for Mermaid, data flowing to the right."""
    numbers = {each.dataset_id: number for number, each in enumerate(lineage)}
    yield "flowchart LR"
    for each in lineage:
        label = "<br/>".join(_mermaid_text(line) for line in _lines(each))
        yield f'  n{numbers[each.dataset_id]}["{label}"]'
    for each in lineage:
        for item in each.inputs:
            alias = f'|"{_mermaid_text(item.alias)}"|' if item.alias else ""
            yield f"  n{numbers[item.dataset_id]} -->{alias} n{numbers[each.dataset_id]}"


def _lines(each: LineageDataset) -> list[str]:
    if not each.name:
        return [str(each.dataset_id), "not in this node"]
    return [each.name, "root" if each.engine is None else f"derived by {each.engine}", each.trust]


def _dot_text(text: str) -> str:
    return _CONTROLS.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')


def _mermaid_text(text: str) -> str:
    # Mermaid has its own escapes: a number sign, a name or a number, a semicolon.
    escaped = _CONTROLS.sub(" ", text).replace("#", "#35;").replace("&", "#amp;")
    return escaped.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
