"""The graph of datasets: what each is made of, up to which version of it, and in which order they follow. Pure.

Edges lead from an input to what reads it. They come from chains alone: a derivative's query names its inputs, its steps
name the blocks that they read.

Source: clauses CONVERGE-1 and CONVERGE-2 in ``spec/plug-ins/convergence.md``.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from odf_convergence.declared import DeclaredGoal
from odf_protocol.enums import DatasetKind
from odf_protocol.events import SetTransform

MAX_SHOWN: Final = 12
"""Datasets of a circle that are named; more are counted.  # guess: a line that can be read"""
_TRACE_BYTES: Final = 16
_HASH_BYTES: Final = 6
"""Of the hash of a query that is shown.  # guess: few enough queries"""


@dataclass(frozen=True, slots=True)
class InputLimit:
    """That an input is read up to a block for now; ``upto`` None: nothing of it yet."""

    upto: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInput:
    """An input of a dataset.

    Attributes:
        key: Identity of the input.
        alias: What the query calls it.
        taken: Number of the newest block of it that was read; None: none was.
        limit: Up to where it may be read; None: to its end.
    """

    key: str
    alias: str = ""
    taken: int | None = None
    limit: InputLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCost:
    """What an action took last, or is thought to take; None: not known.

    Attributes:
        seconds: Of time.
        rows: That were read, or brought.
        size_bytes: Of files that were read, or brought.
    """

    seconds: float | None = None
    rows: int | None = None
    size_bytes: int | None = None


UNKNOWN_COST: Final = ActionCost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An action that failed, at the versions of now.

    Attributes:
        text: Why.
        until_ms: Until when it is left alone, in milliseconds since 1970.
        count: Attempts in vain so far.
    """

    text: str
    until_ms: int
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDataset:
    """A dataset as this node knows it.

    Attributes:
        key: Identity, as text.
        name: Here; of a dataset that is not here its identity.
        kind: Root or derivative; None: it is not here.
        is_own: This node writes it.
        place: Where it comes from: the source of an own root, the other node of others' datasets; empty: neither.
        head: Number of its newest block; None: it is not here.
        version: Hash of its newest block; empty: it is not here.
        newest: Number of the newest block with rows or a watermark; None: it has none.
        has_columns: Its schema is known.
        rows: How many it has.
        engine: Of a derivative.
        query: Of a derivative: a short hash of its definition.
        inputs: What it reads.
        announced: Number of the newest block that others announced; None: nothing is known.
        is_followed: A subscription brings what is announced.
        is_running: Something is done for it now.
        is_settled: At these versions of itself and its inputs there is nothing to write: it was tried.
        failed: What was tried last at these versions, and failed; None: nothing.
        reported: What plug-ins say is failing.
        cost: Of its newest step or ingest.
        recent: How many actions it had within the last hour.
        declared: When it says itself that it is to be up to date; None: it does not.
        asked_for_ms: The deadline for which its source was asked last, in milliseconds since 1970.
    """

    key: str
    name: str
    kind: DatasetKind | None = None
    is_own: bool = False
    place: str = ""
    head: int | None = None
    version: str = ""
    newest: int | None = None
    has_columns: bool = False
    rows: int = 0
    engine: str = ""
    query: str = ""
    inputs: tuple[ReadInput, ...] = ()
    announced: int | None = None
    is_followed: bool = False
    is_running: bool = False
    is_settled: bool = False
    failed: Attempt | None = None
    reported: str = ""
    cost: ActionCost = UNKNOWN_COST
    recent: int = 0
    declared: DeclaredGoal | None = None
    asked_for_ms: int = 0

    @property
    def is_derivative(self) -> bool:
        """Whether it is made by a query."""
        return self.kind is DatasetKind.DERIVATIVE


@dataclass(frozen=True, slots=True)
class DatasetGraph:
    """All datasets; ``make_graph`` makes it.

    Attributes:
        datasets: By key.
        order: All keys, each input before what reads it, else by name; of a circle as it comes.
        readers: What reads each dataset, in this order.
        circles: Of each group of datasets that read each other in a circle one way round.
    """

    datasets: Mapping[str, GraphDataset]
    order: tuple[str, ...]
    readers: Mapping[str, tuple[str, ...]]
    circles: tuple[tuple[str, ...], ...] = ()
    circle_of: Mapping[str, int] = field(default_factory=dict)

    def list_above(self, keys: Iterable[str]) -> set[str]:
        """Return datasets and everything that they rest on."""
        return _reach(keys, lambda key: [each.key for each in self.datasets[key].inputs])

    def list_below(self, keys: Iterable[str]) -> set[str]:
        """Return datasets and everything that rests on them."""
        return _reach(keys, lambda key: self.readers.get(key, ()))

    def trace_of(self, key: str, versions: Mapping[str, str] | None = None) -> str:
        """Digest the versions of a dataset and of what it reads: what is tried again at equal ones ends equally.

        Args:
            key: Of the dataset.
            versions: Hashes of newest blocks that are newer than those of the graph.
        """
        dataset, newer = self.datasets[key], versions or {}
        text = [newer.get(key, dataset.version), str(dataset.announced)]
        for item in dataset.inputs:
            limit = "" if item.limit is None else f"{item.limit.upto} {item.limit.why}"
            text += [item.key, newer.get(item.key, self.datasets[item.key].version), limit]
        return blake2b("\n".join(text).encode(), digest_size=_TRACE_BYTES).hexdigest()

    def describe_circle(self, number: int) -> str:
        """Name the datasets of a circle, and thereby its edges: ``a → b → a``."""
        circle = self.circles[number]
        names = [self.datasets[key].name for key in circle[:MAX_SHOWN]]
        more = len(circle) - len(names)
        return " → ".join([*names, *([f"{more:,} others"] if more else []), names[0]])


def make_graph(datasets: Iterable[GraphDataset]) -> DatasetGraph:
    """Put datasets in order; inputs that are not among them are added as datasets that are not here.

    The order follows from the datasets alone, not from the order in which they come.
    """
    known = {each.key: each for each in datasets}
    absent = {item.key for each in known.values() for item in each.inputs} - known.keys()
    known |= {key: GraphDataset(key=key, name=key) for key in absent}
    readers: dict[str, list[str]] = {key: [] for key in known}
    waiting: dict[str, int] = {}
    for key, each in known.items():
        sources = {item.key for item in each.inputs}
        waiting[key] = len(sources)
        for source in sources:
            readers[source].append(key)
    rank = {key: number for number, key in enumerate(sorted(known, key=lambda key: (known[key].name, key)))}
    order = _order(waiting, readers, rank, [key for key, count in waiting.items() if not count])
    circles: list[tuple[str, ...]] = []
    circle_of: dict[str, int] = {}
    left = [key for key in known if waiting[key]]
    if left:
        for group in _find_groups(left, known):
            circle_of |= dict.fromkeys(group, len(circles))
            circles.append(_walk(min(group, key=rank.__getitem__), group, known))
        waiting |= dict.fromkeys(circle_of, 0)
        order += _order(waiting, readers, rank, circle_of)
    place = {key: number for number, key in enumerate(order)}
    ordered = {key: tuple(sorted(found, key=place.__getitem__)) for key, found in readers.items()}
    return DatasetGraph(known, tuple(order), ordered, tuple(circles), circle_of)


def hash_query(transform: SetTransform) -> str:
    """Give a short hash of a definition: two that are written alike have the same."""
    return blake2b(repr(transform).encode(), digest_size=_HASH_BYTES).hexdigest()


def _order(
    waiting: dict[str, int], readers: Mapping[str, list[str]], rank: Mapping[str, int], free: Iterable[str]
) -> list[str]:
    """Order what is free, and all that is free after it; ``waiting`` is counted down."""
    ready = [(rank[key], key) for key in free]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, key = heapq.heappop(ready)
        order.append(key)
        for reader in readers[key]:
            if waiting[reader]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    heapq.heappush(ready, (rank[reader], reader))
    return order


def _find_groups(keys: Iterable[str], known: Mapping[str, GraphDataset]) -> list[list[str]]:
    """Find the groups whose members all rest on each other (Tarjan's algorithm, without recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[list[str]] = []
    for start in keys:
        if start in number:
            continue
        work = [(start, iter([item.key for item in known[start].inputs]))]
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        while work:
            key, inputs = work[-1]
            for source in inputs:
                if source not in number:
                    number[source] = low[source] = len(number)
                    stack.append(source)
                    on_stack.add(source)
                    work.append((source, iter([item.key for item in known[source].inputs])))
                    break
                if source in on_stack:
                    low[key] = min(low[key], number[source])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[key])
                if low[key] == number[key]:
                    group: list[str] = []
                    while not group or group[-1] != key:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1 or any(item.key == key for item in known[key].inputs):
                        groups.append(group)
    return groups


def _walk(start: str, group: Iterable[str], known: Mapping[str, GraphDataset]) -> tuple[str, ...]:
    """Follow inputs within a group until one comes again; give the circle as data flows."""
    members, path, place = set(group), [start], {start: 0}
    while True:
        following = min(item.key for item in known[path[-1]].inputs if item.key in members)
        if following in place:
            circle = path[place[following] :]
            return (circle[0], *reversed(circle[1:]))
        place[following] = len(path)
        path.append(following)


def _reach(keys: Iterable[str], step: Callable[[str], Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += step(key)
    return found
