"""Graphs on paper for tests of the convergence plug-in, and a world in which planned actions are carried out."""

import random
from dataclasses import replace

from odf_convergence.graph import DatasetGraph, GraphDataset, ReadInput, make_graph
from odf_convergence.planner import ActionBudget, ConvergencePlan, Goal, make_plan
from odf_protocol.enums import DatasetKind


def root(name: str, newest: int | None = 0, **more: object) -> GraphDataset:
    """An own root with its newest rows in a block."""
    head = 0 if newest is None else newest
    values = {
        "kind": DatasetKind.ROOT,
        "is_own": True,
        "head": head,
        "newest": newest,
        "has_columns": newest is not None,
    }
    return GraphDataset(key=name, name=name, **{**values, **more})  # type: ignore[arg-type]


def derived(name: str, *inputs: tuple[str, int | None], **more: object) -> GraphDataset:
    """An own derivative of inputs, each with the newest block that was read."""
    read = tuple(ReadInput(key=key, alias=key, taken=taken) for key, taken in inputs)
    values = {
        "kind": DatasetKind.DERIVATIVE,
        "is_own": True,
        "head": 2,
        "newest": 2,
        "has_columns": True,
        "inputs": read,
    }
    return GraphDataset(key=name, name=name, **{**values, **more})  # type: ignore[arg-type]


def pulled(dataset: GraphDataset, **more: object) -> GraphDataset:
    """The same, as another node's."""
    return replace(dataset, is_own=False, place="https://peer.example", **more)  # type: ignore[arg-type]


def graph_of(*datasets: GraphDataset) -> DatasetGraph:
    return make_graph(datasets)


def plan_all(graph: DatasetGraph, *, asks: bool = False, now_ms: int = 0, **budget: object) -> ConvergencePlan:
    """Plan that everything be up to date."""
    goals = [Goal(key=key, asks=asks) for key in graph.order]
    return make_plan(graph, goals, now_ms, ActionBudget(**budget))  # type: ignore[arg-type]


def names_of(plan: ConvergencePlan) -> list[str]:
    return [each.name for each in plan.actions]


def make_random_graph(seed: int, count: int, *, fan_in: int = 3, roots: int = 10) -> dict[str, tuple[str, ...]]:
    """Inputs by dataset: a tenth (``roots`` at least one in so many) read nothing; no circles."""
    chance = random.Random(seed)
    keys = [f"d{number:05}" for number in range(count)]
    inputs: dict[str, tuple[str, ...]] = {}
    for number, key in enumerate(keys):
        if number < max(1, count // roots):
            inputs[key] = ()
        else:
            inputs[key] = tuple(dict.fromkeys(chance.choices(keys[:number], k=chance.randint(1, fan_in))))
    chance.shuffle(keys)
    return {key: inputs[key] for key in keys}
