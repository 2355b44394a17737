"""What is pushed in one conversation, and as a peer's dataset: here already, and as little trusted as if far away.

Blocks wait in a file without a name; objects are compared with their hashes and lie apart (SMART-10, EX-80).
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from odf_node.http.uploads import Spool, UploadedPeer
from odf_node.ports.objects import Arrivals, ObjectStore
from odf_node.ports.peer_client import PeerDescription, PeerHead, PeerSpeaks
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_node.store.object_names import open_arrivals
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.block_outlines import WantedObject, read_outline
from odf_protocol.exchange.limits import MAX_PUSH_BLOCK_BYTES, MAX_PUSH_BLOCKS
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from odf_protocol.multihash import SHA3_256, Multihash
from odf_smart_protocol.batches import decode_batch
from odf_smart_protocol.messages import BlocksBatch


@dataclass(slots=True)
class SmartUpload(UploadedPeer):
    """One push; ``PeerDataset`` once its blocks are here. Its methods block and are called by one thread at a time."""

    upload_id: str
    token_id: str
    name: str
    record: DatasetRecord | None
    """What is here, None where the dataset is new."""
    lease: ExitStack
    """Holds the writing lease, so that uploaded objects are not swept before the commit."""
    spool: Spool
    """The blocks' bytes."""
    first_number: int = 0
    last: Head | None = None
    dataset_id: DatasetId | None = None
    uploaded: Arrivals | None = None
    """The objects that were uploaded, once it is known whose they are (EX-80)."""
    wanted: dict[Multihash, WantedObject] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        upload_id: str,
        token_id: str,
        name: str,
        record: DatasetRecord | None,
        *,
        objects: ObjectStore,
        spool_folder: Path | None,
    ) -> Self:
        """Open it; it holds a writing lease until ``close``."""
        with ExitStack() as stack:
            stack.enter_context(objects.writing())
            spool = stack.enter_context(Spool(spool_folder))
            dataset_id = None if record is None else record.id
            return cls(upload_id, token_id, name, record, stack.pop_all(), spool, dataset_id=dataset_id)

    def take(self, batch: BlocksBatch, *, may_replace: bool) -> None:
        """Take the blocks that follow what is here, or, where they ``may_replace`` it, all blocks from the Seed.

        Raises:
            MalformedError: No batch, or a block in it is none.
            RejectedError: The blocks do not follow each other or what is here, or are too many.
        """
        previous = None if self.record is None else self.record.head
        is_first = True
        if batch.num_blocks > MAX_PUSH_BLOCKS:
            raise RejectedError("EX-11 push-size", expected=f"at most {MAX_PUSH_BLOCKS} blocks", found=batch.num_blocks)
        for block_hash, raw in decode_batch(batch.payload_bytes(), num_blocks=batch.num_blocks):
            block = read_outline(raw)
            if is_first and may_replace and block.sequence_number == 0:
                previous = None
            if is_first:
                self.first_number = 0 if previous is None else previous.sequence_number + 1
                is_first = False
            number = 0 if previous is None else previous.sequence_number + 1
            if block.sequence_number != number or block.prev_block_hash != (previous.hash if previous else None):
                raise RejectedError(
                    "SMART-10 blocks-in-order",
                    sequence_number=block.sequence_number,
                    expected=f"the block after {previous}",
                )
            if number == 0:
                self.dataset_id = block.seed_of or self.dataset_id
            for item in block.wanted:
                if item.hash.code != SHA3_256:
                    raise RejectedError("EX-12 object-hash", sequence_number=number, found=item.hash)
                self.wanted[item.hash] = item
            self.spool.append(raw)
            if self.spool.size_bytes > MAX_PUSH_BLOCK_BYTES:
                raise RejectedError("EX-11 push-size", expected=f"at most {MAX_PUSH_BLOCK_BYTES} bytes", found="more")
            previous = Head(number, block_hash)
        self.last = previous
        if self.dataset_id is None:
            raise RejectedError("CHAIN-1 first-block-is-seed", sequence_number=0)

    @property
    def arrivals(self) -> Arrivals:
        """See ``UploadedDataset``."""
        assert self.uploaded is not None
        return self.uploaded

    def open_arrivals(self, store: MetadataStore, objects: ObjectStore) -> None:
        """Begin to take objects; what arrives is there for whoever begins the push again (HOME-19)."""
        assert self.dataset_id is not None
        arrivals = open_arrivals(store, objects, self.dataset_id, f"push:{self.token_id}")
        self.uploaded = self.lease.enter_context(arrivals)

    def check_complete(self) -> None:
        """Check that every object that a block names is here, with its size (SMART-10).

        Raises:
            RejectedError: One is not.
        """
        for item in self.wanted.values():
            found = self.arrivals.get_size(item.hash) if self.arrivals.has(item.hash) else None
            if found != item.size_bytes:
                raise RejectedError(
                    f"SMART-10 all-objects ({item.hash})", expected=f"{item.size_bytes} bytes", found=found
                )

    def close(self) -> None:
        """Let go of the lease, the waiting blocks, and what was uploaded."""
        self.lease.close()

    # As PeerDataset

    @property
    def description(self) -> PeerDescription:
        """See ``PeerDataset``."""
        return PeerDescription(url=f"push:{self.token_id}", speaks=PeerSpeaks.SMART)

    async def get_head(self) -> PeerHead:
        """See ``PeerDataset``."""
        assert self.last is not None
        return PeerHead(head=self.last, name=self.name, dataset_id=self.dataset_id)

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """See ``PeerDataset``."""
        wanted_from = 0 if after is None else after.sequence_number + 1
        if wanted_from < self.first_number:
            found = f"blocks from {self.first_number}"
            raise RejectedError("SMART-10 blocks-in-order", expected=f"blocks from {wanted_from}", found=found)
        for number, raw in enumerate(self.spool, start=self.first_number):
            if wanted_from <= number <= upto.sequence_number:
                yield PackedBlock(raw)
