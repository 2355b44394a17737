"""Bring datasets up to date: poll a root, run a derivative, or take what another node offers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

from odf_node.errors import RefusedError, UsageError
from odf_node.ports import Clock, DatasetRecord, Head, MetadataStore, ObjectStore, Origin, Peer, PeerKeyChangedError
from odf_node.ports.peer_client import (
    ObjectKind,
    PackedBlock,
    PeerDataset,
    PeerDescription,
    PeerHead,
    PeerSpeaks,
    WantedObject,
)
from odf_node.services.acceptance import AcceptanceReport, Acceptor, Candidate, Offer
from odf_node.services.chains import load_view
from odf_node.services.ingestion import Ingestor, IngestReport
from odf_node.services.naming import get_dataset, select_datasets
from odf_node.services.transforms import Transformer, TransformReport, input_ids
from odf_node.services.verification import OfferedBlock
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import AddData, DatasetKind, ExecuteTransform
from odf_protocol.names import DatasetName
from odf_protocol.policy import Decision, Policy
from odf_protocol.timestamp import Timestamp

PullReport = IngestReport | TransformReport | AcceptanceReport


class ProgressLine(Protocol):
    """Where a long pull says how far it is."""

    def say(self, label: str) -> None:
        """Say what is going on."""
        ...

    def expect(self, total_bytes: int) -> None:
        """Say how much there will be."""
        ...

    def advance(self, size_bytes: int) -> None:
        """Say how much more has come."""
        ...


@dataclass(frozen=True, slots=True)
class PullTarget:
    """One dataset to bring up to date: one of this node's, or one at a URL that may be new here."""

    label: str
    record: DatasetRecord | None
    url: str | None


@dataclass(frozen=True, slots=True)
class Pulling:
    """The use case behind ``odf-node pull``."""

    store: MetadataStore
    objects: ObjectStore
    clock: Clock
    ingestor: Ingestor
    transformer: Transformer
    acceptor: Callable[[Callable[[str], None]], Acceptor]
    open_peer: Callable[[str], Awaitable[PeerDataset]]

    def plan(self, sources: Sequence[str], *, everything: bool = False) -> list[PullTarget]:
        """Find what is meant: names, identities and patterns of this node's datasets, or URLs of others'.

        Inputs come before what is derived from them.

        Raises:
            UnknownDatasetError: A name or pattern means nothing here.
        """
        targets = [PullTarget(source, None, source) for source in sources if "://" in source]
        names = [source for source in sources if "://" not in source]
        records = list(self.store.list_datasets()) if everything else select_datasets(self.store, names)
        targets += [PullTarget(record.name, record, record.origin_url) for record in self._inputs_first(records)]
        return targets

    def set_watermarks(self, names: Sequence[str], watermark: Timestamp) -> list[IngestReport]:
        """State a watermark by hand for each of the named roots."""
        now = self.clock.now()
        return [
            self.ingestor.set_watermark(get_dataset(self.store, name), watermark, system_time=now) for name in names
        ]

    async def pull(
        self,
        target: PullTarget,
        *,
        local_name: str | None,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
    ) -> PullReport:
        """Bring one dataset up to date.

        Raises:
            RefusedError: What the peer offers is not accepted; nothing changed.
            UsageError: The request makes no sense for this dataset.
        """
        record = target.record
        if record is not None and record.origin is Origin.OWN:
            progress.say(f"{record.name}: working")
            if record.kind is DatasetKind.ROOT:
                return await self.ingestor.poll(record, system_time=self.clock.now())
            return await finish_in_thread(lambda: self.transformer.run_next(record, system_time=self.clock.now()))
        assert target.url is not None
        name = local_name or (record.name if record else name_in_url(target.url))
        async with await self.open_peer(target.url) as peer:
            return await self.take(
                peer, url=target.url, name=name, policy=policy, expected_id=expected_id, progress=progress
            )

    async def take(
        self,
        peer: PeerDataset,
        *,
        url: str,
        name: str,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
    ) -> AcceptanceReport:
        """Take what a peer offers for a dataset, whichever side asked; errors as ``pull``."""
        try:
            with self.objects.writing():
                return await self._take(peer, url, name, policy, expected_id, progress)
        except RefusedError:
            # The lease has ended: what was fetched for the refused offer is named by nothing and can go (ACCEPT-6).
            await finish_in_thread(lambda: self.objects.sweep(self.store.list_referenced_objects, now=self.clock.now()))
            raise

    async def _take(
        self,
        peer: PeerDataset,
        url: str,
        name: str,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
    ) -> AcceptanceReport:
        progress.say(f"{name}: asking {url}")
        offered = await peer.get_head()
        record = self._find_held(name, offered)
        if record is not None and record.origin is Origin.OWN:
            raise UsageError(f"'{record.name}' is this node's own; take the other one under another name with --as")
        if record is not None and self._is_known(record, offered.head):
            return _up_to_date(record)
        acceptor = self.acceptor(lambda text: progress.say(f"{name}: {text}"))
        offer = await self._fetch_chain(peer, url, name, record, offered, expected_id)
        candidate = await finish_in_thread(lambda: acceptor.examine(offer, now=self.clock.now()))
        await self._fetch_objects(peer, candidate, name, progress)
        report = await finish_in_thread(lambda: acceptor.accept(candidate, policy=policy, now=self.clock.now()))
        return replace(report, warnings=report.warnings + self._remember_peer(peer.description))

    def _remember_peer(self, description: PeerDescription) -> tuple[str, ...]:
        """Keep who answers at an address; say so when it is somebody else than before.

        Not refused: data are judged by the keys of their datasets, and a node may be set up anew.
        """
        if description.speaks is PeerSpeaks.FOLDER:
            return ()
        peer = Peer(url=description.url, node_key=description.node_id, first_seen=self.clock.now())
        try:
            self.store.put_peer(peer)
        except PeerKeyChangedError as error:
            return (str(error),)
        return ()

    async def _fetch_chain(
        self,
        peer: PeerDataset,
        url: str,
        name: str,
        record: DatasetRecord | None,
        offered: PeerHead,
        expected_id: DatasetId | None,
    ) -> Offer:
        blocks: list[PackedBlock] = []
        base = record.head if record is not None else None
        if base is None or offered.head.sequence_number > base.sequence_number:
            blocks = [block async for block in peer.iter_blocks(after=base, upto=offered.head)]
        else:
            # The peer's chain is no longer than ours and its head is not in ours: it is another history. It is fetched
            # whole, so that what is refused can be shown.
            base = None
            blocks = [block async for block in peer.iter_blocks(after=None, upto=offered.head)]
        return Offer(
            name=record.name if record else name,
            source_url=url,
            base=base,
            blocks=[OfferedBlock(block.raw, block.signature, block.replay_record) for block in blocks],
            signed_head=offered.signed_head,
            expected_id=expected_id,
        )

    async def _fetch_objects(self, peer: PeerDataset, candidate: Candidate, name: str, progress: ProgressLine) -> None:
        wanted = list_wanted(candidate)
        missing = [item for item in wanted if not self.objects.has(item.hash)]
        if missing:
            progress.expect(sum(item.size_bytes for item in missing))
            progress.say(f"{name}: fetching")
            await peer.fetch_objects(missing, self.objects, progress.advance)

    def _find_held(self, name: str, offered: PeerHead) -> DatasetRecord | None:
        if offered.dataset_id is not None:
            held = self.store.find_dataset(offered.dataset_id)
            if held is not None:
                return held
        return next((record for record in self.store.list_datasets() if record.name.lower() == name.lower()), None)

    def _is_known(self, record: DatasetRecord, head: Head) -> bool:
        return self.store.find_block(record.id, head.hash) is not None

    def _inputs_first(self, records: Sequence[DatasetRecord]) -> list[DatasetRecord]:
        wanted = {record.id: record for record in records}
        ordered: dict[DatasetId, DatasetRecord] = {}

        def visit(record: DatasetRecord) -> None:
            if record.id in ordered:
                return
            if record.kind is DatasetKind.DERIVATIVE:
                transform = load_view(self.store, record.id).transform
                for dataset_id in input_ids(transform) if transform else ():
                    if dataset_id in wanted:
                        visit(wanted[dataset_id])
            ordered[record.id] = record

        for record in records:
            visit(record)
        return list(ordered.values())


def list_wanted(candidate: Candidate) -> list[WantedObject]:
    """List the objects that the new blocks name, with their kind."""
    wanted: dict[object, WantedObject] = {}
    for block in candidate.chain.blocks:
        if isinstance(block.event, AddData | ExecuteTransform):
            data, checkpoint = block.event.new_data, block.event.new_checkpoint
            if data is not None:
                wanted[data.physical_hash] = WantedObject(ObjectKind.DATA, data.physical_hash, data.size)
            if checkpoint is not None:
                wanted[checkpoint.physical_hash] = WantedObject(
                    ObjectKind.CHECKPOINT, checkpoint.physical_hash, checkpoint.size
                )
    return list(wanted.values())


def name_in_url(url: str) -> str:
    """Take the local name from a URL: its last path segment, as other ODF programs do.

    Raises:
        UsageError: The URL ends in nothing that is a dataset name.
    """
    segments = [segment for segment in urlsplit(url).path.split("/") if segment]
    candidate = segments[-1] if segments else urlsplit(url).hostname or ""
    try:
        return str(DatasetName.parse(candidate))
    except MalformedError as error:
        raise UsageError(f"{url} does not end in a dataset name; give one with --as") from error


def _up_to_date(record: DatasetRecord) -> AcceptanceReport:
    return AcceptanceReport(record, 0, 0, 0, Decision(True, record.trust, False, "nothing new"), (), False)
