"""Nodes on paper that plan by the real planner and carry its actions out, with faults, kills, lost news and partitions.

A dataset has a chain at its owner, a list of values; other nodes have a part of it from its beginning. The value of a
root is the set of its rows; that of a derivative follows from the values of its inputs. Nothing is kept beside chains
but what a node remembers of attempts, which a kill takes from it.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from odf_convergence.graph import Attempt, DatasetGraph, GraphDataset, ReadInput, make_graph
from odf_convergence.planner import ActionKind, Goal, PlannedAction, make_plan
from odf_protocol.enums import DatasetKind

Value = Any


@dataclass
class PaperBlock:
    """A value, and the newest blocks of the inputs that it was made of."""

    value: Value
    taken: dict[str, int]


@dataclass
class PaperNode:
    """What a node has of each dataset that it owns or reads: its newest block; and what it remembers."""

    heads: dict[str, int] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)
    settled: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    failed: dict[str, Attempt] = field(default_factory=dict)


@dataclass
class PaperWorld:
    """All nodes.

    Args:
        inputs: Of each dataset; a root has none.
        node_count: Datasets are dealt out to so many nodes.
        seed: Of everything that is left to chance.
    """

    inputs: Mapping[str, tuple[str, ...]]
    node_count: int
    seed: int
    fault_rate: float = 0.0
    chains: dict[str, list[PaperBlock]] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    nodes: list[PaperNode] = field(default_factory=list)
    cut: set[int] = field(default_factory=set)
    now_ms: int = 0
    steps: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.nodes = [PaperNode() for _ in range(self.node_count)]
        deal = random.Random(0)
        for key in sorted(self.inputs):
            owner = self.owners[key] = deal.randrange(self.node_count)
            self.chains[key] = [] if self.inputs[key] else [PaperBlock(frozenset(), {})]
            self.nodes[owner].heads[key] = len(self.chains[key]) - 1
        for key, read in self.inputs.items():
            for source in read:
                self.nodes[self.owners[key]].heads.setdefault(source, len(self.chains[source]) - 1)

    def add_row(self, key: str, row: int) -> None:
        """A root gains a row, late or not."""
        before = self.chains[key][-1].value
        self.chains[key].append(PaperBlock(before | {row}, {}))
        self.nodes[self.owners[key]].heads[key] = len(self.chains[key]) - 1

    def gossip(self) -> None:
        """Nodes that are not cut off learn of some newer blocks of what they read; the rest is lost for now."""
        for number, node in enumerate(self.nodes):
            for key in node.heads:
                if {number, self.owners[key]} & self.cut or self.chance.random() < self.fault_rate:
                    continue
                node.announced[key] = len(self.chains[key]) - 1

    def read_graph(self, number: int) -> DatasetGraph:
        """What a node knows."""
        node = self.nodes[number]
        return make_graph(self._dataset(number, node, key) for key in node.heads)

    def _dataset(self, number: int, node: PaperNode, key: str) -> GraphDataset:
        head, is_own = node.heads[key], self.owners[key] == number
        taken = self.chains[key][head].taken if head >= 0 else {}
        # Of others' derivatives only the inputs are known that are here as well.
        read = [source for source in self.inputs[key] if source in node.heads]
        return GraphDataset(
            key=key,
            name=key,
            kind=DatasetKind.DERIVATIVE if self.inputs[key] else DatasetKind.ROOT,
            is_own=is_own,
            place="" if is_own else f"node{self.owners[key]}",
            head=head + 1,
            newest=None if head < 0 else head + 1,
            has_columns=head >= 0,
            inputs=tuple(ReadInput(key=s, taken=None if s not in taken else taken[s] + 1) for s in read),
            announced=None if is_own or key not in node.announced else node.announced[key] + 1,
            is_settled=node.settled.get(key) == self._versions(node, key),
            failed=node.failed.get(key),
        )

    def _versions(self, node: PaperNode, key: str) -> tuple[tuple[str, int], ...]:
        return tuple((each, node.heads[each]) for each in (key, *self.inputs[key]) if each in node.heads)

    def run_node(self, number: int) -> int:
        """Plan, and carry out the plan up to where a kill ends it; give how many actions were planned."""
        graph = self.read_graph(number)
        actions = make_plan(graph, [Goal(key=key) for key in graph.order], self.now_ms).actions
        kill_at = self.chance.randrange(len(actions)) if actions and self.chance.random() < self.fault_rate else None
        for place, action in enumerate(actions):
            if place == kill_at:
                self.nodes[number].settled.clear()
                self.nodes[number].failed.clear()
                break
            self._run(number, action)
        return len(actions)

    def _run(self, number: int, action: PlannedAction) -> None:
        node, key = self.nodes[number], action.key
        if self.chance.random() < self.fault_rate or (
            action.kind is ActionKind.PULL and {number, self.owners[key]} & self.cut
        ):
            node.failed[key] = Attempt(text="fault", until_ms=self.now_ms + 1000)
            return
        node.failed.pop(key, None)
        if action.kind is ActionKind.PULL:
            node.heads[key] = len(self.chains[key]) - 1
            return
        assert self.owners[key] == number
        read = {source: node.heads[source] for source in self.inputs[key]}
        if any(head < 0 for head in read.values()):
            return
        value = self.compute(key, {source: self.chains[source][head].value for source, head in read.items()})
        self.steps[key] = self.steps.get(key, 0) + 1
        chain = self.chains[key]
        if chain and chain[-1].value == value:
            node.settled[key] = self._versions(node, key)
            return
        chain.append(PaperBlock(value, read))
        node.heads[key] = len(chain) - 1

    def compute(self, key: str, values: Mapping[str, Value]) -> Value:
        """The query of a derivative; every third one gives the same for many inputs, as filters do."""
        made = crc32(repr((key, sorted((name, hash(value)) for name, value in values.items()))).encode())
        return made % 2 if crc32(key.encode()) % 3 == 0 else made

    def expect(self) -> dict[str, Value]:
        """What every dataset has to be: a function of the rows of roots and the queries alone."""
        found: dict[str, Value] = {}
        for key in make_graph(
            GraphDataset(key=key, name=key, inputs=tuple(ReadInput(key=s) for s in read))
            for key, read in self.inputs.items()
        ).order:
            read = self.inputs[key]
            found[key] = (
                self.compute(key, {source: found[source] for source in read}) if read else self.chains[key][-1].value
            )
        return found

    def heal_and_settle(self, max_rounds: int) -> int:
        """End all faults, and let nodes run until none plans anything; give the number of rounds."""
        self.fault_rate, self.cut = 0.0, set()
        for rounds in range(1, max_rounds + 1):
            self.now_ms += 10_000
            self.gossip()
            if not sum(self.run_node(number) for number in range(self.node_count)):
                return rounds
        raise AssertionError(f"not settled after {max_rounds} rounds")
