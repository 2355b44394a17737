"""Reads the graph of a home: what chains, subscriptions and announced heads say. Asks no other node, changes nothing.

Source: clause CONVERGE-1 in ``spec/plug-ins/convergence.md``.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from odf_convergence.declared import DeclaredGoal, find_goal
from odf_convergence.graph import (
    UNKNOWN_COST,
    ActionCost,
    DatasetGraph,
    GraphDataset,
    InputLimit,
    ReadInput,
    hash_query,
    make_graph,
)
from odf_convergence.notes import read_attempts
from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.derive.holding import find_holds
from odf_node.derive.step_log import StepLog
from odf_node.home import Home
from odf_node.ingest.followed_rows import CURSOR, find_place
from odf_node.ports.observing import place_of
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.upkeep.status_findings import Condition, iter_reported
from odf_protocol.chain.state import InputProgress
from odf_protocol.chain.stored_state import decode_reads
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.events import FetchStepFilesGlob, FetchStepMqtt, FetchStepUrl, SetTransform, SourceState
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.multihash import Multihash
from odf_protocol.transform_plan import input_ids


@dataclass(frozen=True, slots=True)
class _Followed:
    """Which dataset of this node a root follows, and how many rows of it it has read."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class _KnownDataset:
    """A dataset as it was read at a head; numbers of blocks of its inputs, which never change, included."""

    head: Multihash
    dataset: GraphDataset
    followed: _Followed | None = None


@dataclass
class HomeGraph:
    """Reads again only chains that grew since the last time; there may be ten thousand others."""

    home: Home
    reads_costs: bool = True
    _known: dict[str, _KnownDataset] = field(default_factory=dict)

    def read(self) -> DatasetGraph:
        """Read the graph as it is now."""
        store = self.home.store
        subscribed = {str(each.dataset_id): each for each in store.list_subscriptions()}
        records = store.list_datasets()
        known: dict[str, _KnownDataset] = {}
        for record in records:
            key = str(record.id)
            found = self._known.get(key)
            is_same = found is not None and (found.head, found.dataset.name) == (record.head.hash, record.name)
            if found is None or not is_same or self._has_unknown_inputs(found.dataset):
                found = self._read(record, key)
            known[key] = found
        self._known = known
        names = {record.name.lower(): str(record.id) for record in records}
        failing = self._list_failing()
        announced = {str(key): number for key, number in store.list_seen_heads().items()}
        datasets = [self._complete(each, names, failing, subscribed, announced) for each in known.values()]
        for key, each in subscribed.items():
            if key not in known:
                place = place_of(each.url or "")
                datasets.append(GraphDataset(key=key, name=each.name, place=place))
        return make_graph(datasets)

    def _has_unknown_inputs(self, dataset: GraphDataset) -> bool:
        """Say of another node's derivative whether blocks that it has read were not here when its chain was read."""
        return not dataset.is_own and any(item.taken is None for item in dataset.inputs)

    def _list_failing(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in iter_reported(self.home):
            if each.condition is Condition.FAILING and each.dataset is not None:
                found.setdefault(each.dataset, each.what)
        return found

    def _complete(
        self,
        known: _KnownDataset,
        names: Mapping[str, str],
        failing: Mapping[str, str],
        subscribed: Collection[str],
        announced: Mapping[str, int],
    ) -> GraphDataset:
        """Add to what a chain says what may change without it."""
        dataset = known.dataset
        if (reported := failing.get(dataset.name, "")) != dataset.reported:
            dataset = replace(dataset, reported=reported or dataset.reported)
        if dataset.is_own and dataset.is_derivative and any(self._is_behind(each) for each in dataset.inputs):
            dataset = replace(dataset, inputs=self._limit(dataset))
        if not dataset.is_own and (number := announced.get(dataset.key)) != dataset.announced:
            dataset = replace(dataset, announced=number)
        if dataset.key in subscribed:
            dataset = replace(dataset, is_followed=True)
        if known.followed is not None and (key := names.get(known.followed.name.lower())) is not None:
            source = self._known[key].dataset
            # A follower notes how many rows it has read (ING-43), not a block: the newest one has others, or not.
            is_behind = source.rows > known.followed.rows and source.newest is not None
            taken = (source.newest or 0) - 1 if is_behind else source.newest
            dataset = replace(dataset, inputs=(ReadInput(key=key, alias=source.name, taken=taken),))
        return dataset

    def _is_behind(self, item: ReadInput) -> bool:
        source = self._known.get(item.key)
        newest = None if source is None else source.dataset.newest
        return newest is not None and (item.taken is None or item.taken < newest)

    def _limit(self, dataset: GraphDataset) -> tuple[ReadInput, ...]:
        """Ask the rules of this node how far inputs may be read (PLAN-21), of datasets alone that have not read all."""
        record = self.home.store.find_dataset(DatasetId.parse(dataset.key))
        holds = {} if record is None else {str(key): each for key, each in find_holds(self.home, record).items()}
        return tuple(
            item if (hold := holds.get(item.key)) is None else replace(item, limit=InputLimit(hold.upto, hold.reason))
            for item in dataset.inputs
        )

    def _read(self, record: DatasetRecord, key: str) -> _KnownDataset:
        try:
            return self._read_chain(record, key)
        except OdfError as error:  # 'verify' says more; it must not hide the others
            kind, is_own = record.kind, record.origin is Origin.OWN
            dataset = GraphDataset(
                key=key, name=record.name, kind=kind, is_own=is_own, head=record.head.sequence_number
            )
            return _KnownDataset(record.head.hash, replace(dataset, has_columns=True, reported=str(error)))

    def _read_chain(self, record: DatasetRecord, key: str) -> _KnownDataset:
        store = self.home.store
        head, encoded = store.get_chain_state(record.id)
        reads, is_own = decode_reads(encoded), record.origin is Origin.OWN
        needs_view = record.kind is DatasetKind.DERIVATIVE or (is_own and reads.has_polling_source)
        view = load_view(store, record.id) if needs_view else None
        transform = None if view is None else view.transform
        place, followed = (_owner_of(record), None) if not is_own else _source_of(view)
        newest = store.find_newest_data(record.id)
        dataset = GraphDataset(
            key=key,
            name=record.name,
            kind=record.kind,
            is_own=is_own,
            place=place,
            head=head.sequence_number,
            version=str(head.hash),
            newest=newest,
            has_columns=reads.has_schema,
            rows=reads.rows,
            engine="" if transform is None else transform.transform.engine,
            query="" if transform is None else hash_query(transform),
            inputs=() if transform is None else self._inputs_of(transform, reads.taken),
            declared=_declared_of(view) if is_own else None,
            cost=self._cost_of(record, newest) if self.reads_costs else UNKNOWN_COST,
        )
        return _KnownDataset(head.hash, dataset, followed)

    def _inputs_of(self, transform: SetTransform, progress: Mapping[DatasetId, InputProgress]) -> tuple[ReadInput, ...]:
        found: list[ReadInput] = []
        for dataset_id, declared in zip(input_ids(transform), transform.inputs, strict=True):
            read = progress.get(dataset_id)
            number = None
            if read is not None and read.block_hash is not None:
                block = self.home.store.find_block(dataset_id, read.block_hash)
                number = None if block is None else block.sequence_number
            found.append(ReadInput(key=str(dataset_id), alias=declared.alias or "", taken=number))
        return tuple(found)

    def _cost_of(self, record: DatasetRecord, newest: int | None) -> ActionCost:
        """Say what the newest step or ingest took, as it is recorded beside the chain (REPLAY-13, STAGE-4)."""
        if record.kind is DatasetKind.DERIVATIVE:
            step = StepLog(self.home.store).find_newest(record)
            if step is None:
                return UNKNOWN_COST
            read, size = step.statistics.total_read, step.statistics.state_after.size_bytes
            return ActionCost(seconds=step.statistics.total_ms / 1000, rows=read, size_bytes=size or None)
        stages = () if newest is None else self.home.store.find_stages(record.id, newest)
        if not stages:
            return UNKNOWN_COST
        seconds = sum(each.seconds for each in stages if not each.plug_in)
        return ActionCost(seconds=seconds, rows=max((each.rows_in or 0 for each in stages), default=0))


def _declared_of(view: DatasetView | None) -> DeclaredGoal | None:
    """Say what a dataset declares; what this program cannot follow, as it did not write it, is nothing."""
    with suppress(ManifestError):
        return None if view is None else find_goal(view.attachments)
    return None


def _owner_of(record: DatasetRecord) -> str:
    url = record.origin_url or ""
    return place_of(url) or url


def _source_of(view: DatasetView | None) -> tuple[str, _Followed | None]:
    """Say what a pull of an own root asks, and which dataset of this node it follows."""
    if view is None or view.polling_source is None:
        return "", None
    fetch = view.polling_source.fetch
    with suppress(OdfError):  # the pull says so
        place = find_place(fetch)
        if place is not None:
            return f"dataset:{place.name}", _Followed(place.name, read_followed_rows(view.source_state))
    match fetch:
        case FetchStepUrl(url=url):
            return place_of(url) or "a file", None
        case FetchStepFilesGlob():
            return "files", None
        case FetchStepMqtt(host=host):
            return f"mqtt://{host}", None
    return type(fetch).__name__.removeprefix("FetchStep").lower(), None


def read_followed_rows(state: SourceState | None) -> int:
    """Say how many rows of a dataset a root has read that follows it; 0 where it does not say."""
    if state is None or state.kind != CURSOR:
        return 0
    try:
        return int(json.loads(state.value)["offset"]) + 1
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0


def read_graph(node: Node) -> DatasetGraph:
    """Read the graph of a home once, with what its notes say of attempts, for a command."""
    return read_attempts(node.home.folder.cache).mark(HomeGraph(node.home).read(), node.clock.now().unix_ms)
