"""A graph with datasets that manifests would make or change. Pure.

Source: clause CONVERGE-7 in ``spec/plug-ins/convergence.md``.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from odf_convergence.graph import ActionCost, DatasetGraph, GraphDataset, ReadInput, hash_query, make_graph
from odf_protocol.enums import DatasetKind
from odf_protocol.events import SetPollingSource, SetTransform
from odf_protocol.manifest import DatasetSnapshot

NEW: Final = "new:"
"""Begins the key of a dataset that has no identity yet; its name follows, in small letters."""


def add_snapshots(graph: DatasetGraph, snapshots: Iterable[DatasetSnapshot]) -> tuple[DatasetGraph, list[str]]:
    """Put what manifests define into a graph; give it with the keys of these datasets.

    A dataset that is there keeps what it has read: its next step goes on from there.
    """
    listed = list(snapshots)
    if not listed:
        return graph, []
    keys = {each.name.lower(): key for key, each in graph.datasets.items()}
    keys |= {name: f"{NEW}{name}" for each in listed if (name := str(each.name).lower()) not in keys}
    datasets = dict(graph.datasets)
    for snapshot in listed:
        key = keys[str(snapshot.name).lower()]
        known = datasets.get(key) or GraphDataset(
            key=key, name=str(snapshot.name), kind=snapshot.kind, is_own=True, head=0
        )
        datasets[key] = _define(known, snapshot, keys, datasets)
    return make_graph(datasets.values()), [keys[str(each.name).lower()] for each in listed]


def _define(
    known: GraphDataset, snapshot: DatasetSnapshot, keys: dict[str, str], datasets: dict[str, GraphDataset]
) -> GraphDataset:
    if snapshot.kind is DatasetKind.ROOT:
        has_source = any(isinstance(event, SetPollingSource) for event in snapshot.metadata)
        return replace(known, place=known.place or ("its source" if has_source else ""))
    for event in snapshot.metadata:
        if not isinstance(event, SetTransform):
            continue
        taken = {item.key: item.taken for item in known.inputs}
        found = [keys.get(each.dataset_ref.lower(), each.dataset_ref) for each in event.inputs]
        inputs = tuple(
            ReadInput(key=key, alias=each.alias or each.dataset_ref, taken=taken.get(key))
            for key, each in zip(found, event.inputs, strict=True)
        )
        cost = known.cost
        if cost.seconds is None:
            rows = [datasets[key].rows for key in found if key in datasets]
            cost = ActionCost(rows=sum(rows))
        known = replace(
            known, inputs=inputs, engine=event.transform.engine, query=hash_query(event), cost=cost, is_settled=False
        )
    return known
