"""Which datasets a pull is about, where each of them is, and which one comes first."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.exchange.remotes import Remotes
from odf_node.ports.peer_client import PeerDataset
from odf_node.records.datasets import DatasetRecord, Origin, RemoteDirection
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.dataset_view import DatasetView, ViewFold
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, NotFoundError, OdfError
from odf_protocol.events import DatasetKind, SetTransform
from odf_protocol.names import DatasetAlias
from odf_protocol.transform_plan import input_ids


@dataclass(frozen=True, slots=True)
class PullTarget:
    """One dataset to bring up to date: one of this node's, or one elsewhere that may be new here.

    ``others`` are further addresses, asked when ``url`` does not answer. ``alias`` is what the user called it, to be
    remembered. ``expected_id`` is known where another dataset names this one as its input; ``name`` where its place
    says what it is called.
    """

    label: str
    record: DatasetRecord | None
    url: str | None
    others: tuple[str, ...] = ()
    alias: str | None = None
    name: str | None = None
    expected_id: DatasetId | None = None


@dataclass(frozen=True, slots=True)
class PullPlanner:
    """Decides before anything is pulled."""

    store: MetadataStore
    remotes: Remotes
    open_peer: Callable[[str], Awaitable[PeerDataset]]
    iter_siblings: Callable[[str], Iterator[str]]
    """Addresses beside an address, where a place can list them."""

    def plan(self, sources: Sequence[str], *, everything: bool = False) -> list[PullTarget]:
        """Find what is meant: names, identities and patterns of this node's datasets, or references to others'.

        Inputs come before what is derived from them.

        Args:
            sources: As the user typed them.
            everything: All of this node's datasets that can be pulled, instead.

        Raises:
            UnknownDatasetError: A name, pattern or repository means nothing here.
        """
        targets = [self._elsewhere(source) for source in sources if self.remotes.is_remote(source)]
        names = [source for source in sources if not self.remotes.is_remote(source)]
        if everything:
            records = [record for record in self.store.list_datasets() if self._can_be_pulled(record)]
        else:
            records = select_datasets(self.store, names)
        return targets + [self._held(record) for record in self._inputs_first(records)]

    async def plan_with_inputs(self, targets: Sequence[PullTarget]) -> list[PullTarget]:
        """Add every input of every input, held here or not, each once and before what is derived from it.

        Raises:
            UnknownDatasetError: An input is nowhere to be found.
        """
        ordered: dict[object, PullTarget] = {}

        async def visit(target: PullTarget) -> None:
            view = await self._view_of(target)
            key = view.dataset_id
            if key in ordered:
                return
            for dataset_id, item in _inputs(view.transform):
                if dataset_id in ordered:
                    continue
                held = self.store.find_dataset(dataset_id)
                if held is not None:
                    await visit(self._held(held))
                else:
                    await visit(await self._find_elsewhere(dataset_id, item, target))
            ordered.setdefault(key, target)

        for target in targets:
            await visit(target)
        planned = list(ordered.values())
        # What only came in as an input may have nothing to be pulled from.
        named = {id(target) for target in targets}
        return [t for t in planned if t.record is None or id(t) in named or self._can_be_pulled(t.record)]

    def list_inputs(self, record: DatasetRecord) -> list[tuple[DatasetId, str]]:
        """List what a dataset that is held here reads, and under which name; a root reads nothing."""
        if record.kind is not DatasetKind.DERIVATIVE:
            return []
        return _inputs(load_view(self.store, record.id).transform)

    def _elsewhere(self, source: str) -> PullTarget:
        url = self.remotes.resolve(source)
        return PullTarget(source, None, url, alias=source)

    def _held(self, record: DatasetRecord) -> PullTarget:
        if record.origin is Origin.OWN:
            return PullTarget(record.name, record, None)
        addresses = self.remotes.list_addresses(record, RemoteDirection.PULL)
        if not addresses:
            raise UsageError(
                f"'{record.name}' was pushed here, so this node knows no place to pull it from; pull it once by its URL"
            )
        return PullTarget(record.name, record, addresses[0], others=tuple(addresses[1:]))

    def _can_be_pulled(self, record: DatasetRecord) -> bool:
        if record.origin is not Origin.OWN:
            return bool(self.remotes.list_addresses(record, RemoteDirection.PULL))
        if record.kind is DatasetKind.DERIVATIVE:
            return True
        return load_view(self.store, record.id).polling_source is not None

    def _inputs_first(self, records: Sequence[DatasetRecord]) -> list[DatasetRecord]:
        wanted = {record.id: record for record in records}
        ordered: dict[DatasetId, DatasetRecord] = {}

        def visit(record: DatasetRecord) -> None:
            if record.id in ordered:
                return
            for dataset_id, _ in self.list_inputs(record):
                if dataset_id in wanted:
                    visit(wanted[dataset_id])
            ordered[record.id] = record

        for record in records:
            visit(record)
        return list(ordered.values())

    async def _view_of(self, target: PullTarget) -> DatasetView:
        if target.record is not None:
            return load_view(self.store, target.record.id)
        assert target.url is not None
        async with await self.open_peer(target.url) as peer:
            return await outline(peer)

    async def _find_elsewhere(self, dataset_id: DatasetId, name: str, reader: PullTarget) -> PullTarget:
        """Look for an input beside the dataset that reads it: by identity, by the name it is read under, by looking."""
        addresses = [url for url in (reader.url, *reader.others) if url is not None]
        for address in addresses:
            base = address.rstrip("/").rpartition("/")[0]
            for candidate in (f"{base}/{dataset_id}", *_named(base, name), *self.iter_siblings(address)):
                try:
                    async with await self.open_peer(candidate) as peer:
                        if (await outline(peer)).dataset_id != dataset_id:
                            continue
                        called = (await peer.get_head()).name
                except OdfError:
                    continue  # it is looked for, not asked for: whatever is wrong there, it is not the one
                url = f"{base}/{called}" if candidate.endswith(str(dataset_id)) else candidate
                return PullTarget(called, None, url, name=called, expected_id=dataset_id)
        where = f" beside {addresses[0]}" if addresses else ""
        raise UnknownDatasetError(
            f"'{reader.label}' reads '{name}' ({dataset_id}), which is not in this node and was not found{where}; "
            "pull it by its URL first"
        )


async def outline(peer: PeerDataset) -> DatasetView:
    """Read from a peer's blocks what it offers; nothing of it is checked, so it may decide on questions only.

    Raises:
        NotFoundError: It has no blocks.
        MalformedError, UnsupportedError: Bytes that are no block.
    """
    head = await peer.get_head()
    fold = ViewFold(None)
    async for packed in peer.iter_blocks(after=None, upto=head.head):
        fold.take_block(decode_block(packed.raw, expected_hash=None))
    view = fold.view
    if view is None:
        raise NotFoundError(f"{peer.description.url}: a dataset without blocks")
    return view


def _inputs(transform: SetTransform | None) -> list[tuple[DatasetId, str]]:
    if transform is None:
        return []
    names = [item.alias or item.dataset_ref for item in transform.inputs]
    return list(zip(input_ids(transform), names, strict=True))


def _named(base: str, name: str) -> Iterator[str]:
    try:
        alias = DatasetAlias.parse(name)
    except MalformedError:
        return
    yield f"{base}/{alias.name}"
