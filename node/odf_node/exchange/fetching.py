"""Bring what a peer has of a dataset: blocks, examined while they arrive, and then the files that they name.

Blocks are asked for from where they continue what is here, files where they are not here yet.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from odf_node.acceptance.acceptor import Acceptor
from odf_node.acceptance.histories import ask_last_common
from odf_node.acceptance.offers import Candidate, FileCount, Proposal
from odf_node.acceptance.row_checks import RowChecks
from odf_node.errors import ObjectsAbsentError, UsageError
from odf_node.ports.block_stage import BlockStage, ProposedBlock
from odf_node.ports.objects import LARGE_BYTES, Arrivals, ArrivingObjects
from odf_node.ports.peer_client import ObjectKind, PackedBlock, PeerDataset, PeerHead, SearchableHistory
from odf_node.ports.peer_errors import PeerNotFoundError
from odf_node.ports.progress import Count, ProgressLine
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_node.threads import finish_in_thread
from odf_protocol.block import Block, decode_block
from odf_protocol.block_traits import CHECKPOINT, ROWS
from odf_protocol.errors import (
    MalformedError,
    NotFoundError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from odf_protocol.events import Seed
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted
from odf_protocol.head import Head

BATCH_BLOCKS: Final = 1_000
BATCH_BYTES: Final = 1024 * 1024
"""What is checked at once, outside of the event loop.  # guess: some milliseconds of work"""


@dataclass(frozen=True, slots=True)
class ChainFetching:
    """Fetches for one pull; the acceptor examines what comes."""

    store: MetadataStore
    acceptor: Acceptor

    async def fetch(
        self,
        peer: PeerDataset,
        proposal: Proposal,
        record: DatasetRecord | None,
        proposed: PeerHead,
        stage: BlockStage,
        *,
        on_rows: Callable[[], None] = lambda: None,
    ) -> Candidate | DatasetRecord:
        """Fetch and examine the chain up to the head that the peer claims.

        Args:
            peer: Has it.
            proposal: Whose, from where, with which wishes; name, base and blocks are filled in here.
            record: The copy held here, as far as it can be known before any block is here.
            proposed: What the peer claims.
            stage: Empty; where the blocks wait.
            on_rows: Hears, perhaps several times, that some blocks have data; from another thread.

        Returns:
            What was found, or the record of the dataset where there is nothing new.

        Raises:
            ProposalRejectedError: The blocks are not accepted; evidence is kept.
            UsageError: The dataset is this node's own.
        """
        is_here = record is not None and proposed.dataset_id in {None, record.id}
        base = _base_in(record, proposed) if is_here and record is not None else None
        search = record is None or not is_here
        while True:
            stage.clear()
            known = proposal
            if record is not None:
                # Whoever may not know what it is called here is told of it as they call it (EX-85).
                name = record.name if proposal.reads.everything else proposal.name
                known = replace(proposal, name=name, kept_as=None if name == record.name else record.name)
            examination = self.acceptor.begin(replace(known, base=base, blocks=stage), stage)
            blocks = peer.iter_blocks(after=base, upto=proposed.head)
            batches = _batches(blocks)
            try:
                batch: list[ProposedBlock] = await anext(batches, [])
                first = _decode(batch[0]) if batch else None
                if base is None and search:
                    held, search = self._find_held(first), False
                    if held is not None and self.store.find_block(held.id, proposed.head.hash) is not None:
                        return held
                    if held is not None and _base_in(held, proposed) is not None:
                        # It continues what is here under another name, or was taken meanwhile.
                        record, base = held, held.head
                        continue
                is_fork = base is not None and first is not None and first.prev_block_hash != base.hash
                if is_fork and proposal.replaces_history:
                    base, search = None, False
                    continue
                if is_fork and record is not None:
                    examination.note_fork(*await self.find_parting(peer, record, proposed))
                taken, expected = 0, proposed.head.sequence_number - (-1 if base is None else base.sequence_number)
                while batch:
                    await finish_in_thread(partial(examination.take, batch))
                    if examination.has_rows:
                        await finish_in_thread(on_rows)
                    taken += len(batch)
                    # As many as the peer says; what it says is checked by the examination.
                    self.acceptor.on_progress("checking blocks", Count(taken, expected, "blocks"))
                    batch = await anext(batches, [])
                return await finish_in_thread(examination.finish)
            finally:
                await close_source(batches)
                await close_source(blocks)

    async def find_parting(
        self, peer: PeerDataset, record: DatasetRecord, proposed: PeerHead
    ) -> tuple[int | None, ProposedBlock | None]:
        """Find where a peer's history parts from the one held here, as far as the peer answers.

        Returns:
            The last common block, -1: none; and the peer's next one, whose signature may be all that proves a lie.
        """
        if not isinstance(peer, SearchableHistory):
            return None, None
        last_common = await ask_last_common(self.store, record, peer, proposed.head)
        if last_common == min(record.head.sequence_number, proposed.head.sequence_number):
            return None, None  # one is the beginning of the other
        if record.pinned_key is None or last_common is None or last_common < 0:
            return last_common, None  # nobody signed, or nobody knows
        return last_common, await self._fetch_parting(peer, record, last_common)

    async def _fetch_parting(self, peer: PeerDataset, record: DatasetRecord, last_common: int) -> ProposedBlock | None:
        assert isinstance(peer, SearchableHistory)
        common = await finish_in_thread(partial(self.store.find_block_by_number, record.id, last_common))
        try:
            theirs = await peer.find_hash(last_common + 1)
            if common is None or theirs is None:
                return None
            upto = Head(last_common + 1, theirs)
            blocks = peer.iter_blocks(after=Head(last_common, common.hash), upto=upto)
            try:
                block = await anext(blocks, None)
            finally:
                await close_source(blocks)
        except (RejectedError, MalformedError, NotFoundError, UnavailableError, UnsupportedError):
            return None  # it is rejected either way
        return None if block is None else ProposedBlock(block.raw, block.signature, block.step_record)

    def _find_held(self, first: Block | None) -> DatasetRecord | None:
        if first is None or not isinstance(first.event, Seed):
            return None  # the examination says what is wrong with it
        held = self.store.find_dataset(first.event.dataset_id)
        if held is not None and held.origin is Origin.OWN:
            raise UsageError(f"'{held.name}' is this node's own; it is written here only")
        return held


def _base_in(record: DatasetRecord, proposed: PeerHead) -> Head | None:
    """Give the block from which on to ask, None for all blocks.

    A chain that is no longer than ours, and whose head is not in ours, is another history. It is fetched whole, so that
    what is rejected can be shown.
    """
    return record.head if proposed.head.sequence_number > record.head.sequence_number else None


async def _batches(blocks: AsyncIterator[PackedBlock]) -> AsyncIterator[list[ProposedBlock]]:
    batch: list[ProposedBlock] = []
    size_bytes = 0
    async for block in blocks:
        batch.append(ProposedBlock(block.raw, block.signature, block.step_record))
        size_bytes += len(block.raw) + len(block.step_record or b"")
        if len(batch) == BATCH_BLOCKS or size_bytes >= BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


def _decode(proposed: ProposedBlock) -> Block | None:
    try:
        return decode_block(proposed.raw, expected_hash=None)
    except (MalformedError, UnsupportedError):
        return None


async def close_source(blocks: AsyncIterator[object]) -> None:
    """End a source before its end, where it is one that has to be told."""
    close = getattr(blocks, "aclose", None)
    if close is not None:
        await close()


MAX_ABSENT: Final = 100
"""Files that a peer may lack before it is asked for no more.  # guess: more than it lost, less than all of them"""


@dataclass(frozen=True, slots=True)
class FileFetching:
    """Fetches for one candidate; ``reader`` reads large slices as they arrive, where their rows are wanted."""

    objects: Arrivals
    reader: RowChecks
    progress: ProgressLine

    async def fetch(self, peer: PeerDataset, candidate: Candidate) -> FileCount:
        """Bring the files and say how many came; the caller holds a writing lease.

        Raises:
            PeerNotFoundError: The peer lacks some.
            ObjectsAbsentError: It lacks some of blocks that are held already; the others are here now (PART-13).
            OdfError: As ``PeerDataset.fetch_objects``.
        """
        blocks = candidate.chain.iter_blocks(ROWS | CHECKPOINT)
        wanted = {item.hash: item for block in blocks for item in iter_wanted(block.event)}
        missing = [item for item in wanted.values() if not self.objects.has(item.hash)]
        large = {n for n, item in wanted.items() if item.kind is ObjectKind.DATA and item.size_bytes >= LARGE_BYTES}
        if large and candidate.proposal.subset.has_rows:
            here = large.difference(item.hash for item in missing)
            await finish_in_thread(lambda: self.reader.expect(candidate.chain, large, here, self.objects.get_path))
        size_bytes = sum(item.size_bytes for item in missing)
        if missing:
            self.progress.on_progress(f"{candidate.proposal.name}: fetching")
            if candidate.proposal.subset.has_rows and any(item.kind is ObjectKind.DATA for item in missing):
                self.reader.start()  # is up when the files are here
            self.progress.expect(size_bytes)
            arriving = self.reader.hearing(self.objects)
            try:
                await peer.fetch_objects(missing, arriving, self.progress.advance)
            except PeerNotFoundError as error:
                if not candidate.is_held:
                    raise
                await self._fetch_what_is_there(peer, missing, arriving)
                left = sum(not self.objects.has(item.hash) for item in missing)
                if left:
                    raise ObjectsAbsentError(candidate.proposal.name, left, str(error)) from error
        return FileCount(fetched_files=len(missing), fetched_bytes=size_bytes)

    async def _fetch_what_is_there(
        self, peer: PeerDataset, missing: Sequence[WantedObject], arriving: ArrivingObjects
    ) -> None:
        """Bring files one by one from a peer that lacks some: of a dataset that is held, those that come stay."""
        lacks = 0
        for item in missing:
            if not arriving.has(item.hash) and lacks < MAX_ABSENT:
                try:
                    await peer.fetch_objects([item], arriving, self.progress.advance)
                except PeerNotFoundError:
                    lacks += 1
