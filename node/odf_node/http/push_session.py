"""One push on its way: what was offered, what has arrived, and the upload as a peer's dataset (EX-18 to EX-21).

::

    receiving --commit--> verifying --> accepted | rejected | failed
        '-- nobody continues it for PUSH_IDLE_S, or DELETE --> gone

Blocks wait in a file without a name: a crash leaves nothing behind. Objects are compared with their hashes and lie
apart until the push is accepted (EX-80): one that broke goes on with them when it is begun again, also at the next
process (EX-21). They go with a rejection.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from odf_node.http.uploads import Spool, UploadedPeer
from odf_node.ports.objects import Arrivals, ObjectStore
from odf_node.ports.peer_client import PeerDescription, PeerHead, PeerSpeaks
from odf_node.records.access import ReadGrants
from odf_node.store import MetadataStore
from odf_node.store.object_names import open_arrivals
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.exchange.block_outlines import WantedObject, read_outline
from odf_protocol.exchange.limits import MAX_PUSH_BLOCK_BYTES, MAX_PUSH_BLOCKS, PAGE_MISSING_OBJECTS
from odf_protocol.exchange.messages import HeadMessage, MissingObject, Problem, PushRequest, PushState, PushStatus
from odf_protocol.exchange.packs import PackedBlock, decode_pack
from odf_protocol.head import Head
from odf_protocol.multihash import SHA3_256, Multihash


@dataclass(slots=True)
class PushSession:
    """State of one push; its methods block and are called by one thread at a time."""

    push_id: str
    token_id: str
    request: PushRequest
    known_head: Head | None
    lease: ExitStack
    """Holds the writing lease, so that uploaded objects are not swept before the commit."""
    spool: Spool
    """The packs as they came."""
    reads: ReadGrants
    """What of this node the pusher may know."""
    arrivals: Arrivals
    """The objects that were uploaded: what lies in the store for others is none of them (EX-80)."""
    touched_s: float
    status: PushStatus = PushStatus.RECEIVING
    problem: Problem | None = None
    received: Head | None = None
    wanted: dict[Multihash, WantedObject] = field(default_factory=dict)
    block_count: int = 0
    takes_pack: bool = False
    """Blocks are on their way into memory."""

    @classmethod
    def begin(
        cls,
        push_id: str,
        token_id: str,
        request: PushRequest,
        *,
        reads: ReadGrants,
        known_head: Head | None,
        store: MetadataStore,
        objects: ObjectStore,
        spool_folder: Path | None,
        now_s: float,
    ) -> Self:
        """Open a session; it holds a writing lease until ``close``."""
        with ExitStack() as stack:
            stack.enter_context(objects.writing())
            spool = stack.enter_context(Spool(spool_folder))
            brought_by = f"push:{token_id}"
            arrivals = stack.enter_context(open_arrivals(store, objects, request.to_dataset_id(), brought_by))
            lease = stack.pop_all()
            return cls(
                push_id, token_id, request, known_head, lease, spool, reads, arrivals, now_s, received=known_head
            )

    @property
    def proposed(self) -> Head:
        """Where the pushed chain ends."""
        return self.request.head.to_head()

    @property
    def is_open(self) -> bool:
        """Whether it still holds blocks and a lease; the answer of one that ended stays for whoever asks."""
        return self.status in {PushStatus.RECEIVING, PushStatus.VERIFYING}

    def add_pack(self, body: bytes, *, after: int) -> None:
        """Take the blocks that follow block ``after``.

        Raises:
            MalformedError: No pack, or a block in it is none.
            RejectedError: The blocks do not follow what is here, or are too many; nothing was taken.
        """
        received = -1 if self.received is None else self.received.sequence_number
        if after != received:
            raise RejectedError("EX-19 blocks-in-order", expected=f"blocks after {received}", found=f"after {after}")
        last, wanted = self.received, dict[Multihash, WantedObject]()
        packed = decode_pack(body)
        if self.block_count + len(packed) > MAX_PUSH_BLOCKS or self.spool.size_bytes + len(body) > MAX_PUSH_BLOCK_BYTES:
            raise RejectedError("EX-11 push-size", expected=f"at most {MAX_PUSH_BLOCKS} blocks", found="more")
        for entry in packed:
            block = read_outline(entry.raw)
            expected = 0 if last is None else last.sequence_number + 1
            if block.sequence_number != expected or block.prev_block_hash != (None if last is None else last.hash):
                raise RejectedError(
                    "EX-19 blocks-in-order", sequence_number=block.sequence_number, expected=f"the block after {last}"
                )
            last = Head(block.sequence_number, block.hash)
            for item in block.wanted:
                if item.hash.code != SHA3_256:
                    raise RejectedError("EX-12 object-hash", sequence_number=block.sequence_number, found=item.hash)
                wanted[item.hash] = item
        if last is not None and last.sequence_number > self.proposed.sequence_number:
            raise RejectedError("EX-19 blocks-up-to-the-head", expected=self.proposed, found=last)
        self.spool.append(body)
        self.received, self.block_count = last, self.block_count + len(packed)
        self.wanted.update(wanted)

    def iter_blocks(self) -> Iterator[PackedBlock]:
        """Yield the pushed blocks again."""
        for body in self.spool:
            yield from decode_pack(body)

    def list_missing(self) -> list[WantedObject]:
        """Return the objects that the pushed blocks name and that have to be sent, in the order of the blocks."""
        return [item for item in self.wanted.values() if not self.arrivals.has(item.hash)]

    def check_complete(self) -> None:
        """Check that the chain reaches the offered head and every object is here.

        Raises:
            RejectedError: Something is missing; the push may go on.
        """
        if self.received != self.proposed:
            raise RejectedError("EX-20 all-blocks", expected=self.proposed, found=self.received)
        missing = self.list_missing()
        if missing:
            raise RejectedError("EX-20 all-objects", expected="none missing", found=f"{len(missing)} missing")

    def describe(self) -> PushState:
        """Say how far the push is."""
        missing = self.list_missing() if self.status is PushStatus.RECEIVING else []
        return PushState(
            push_id=self.push_id,
            status=self.status,
            known_head=None if self.known_head is None else HeadMessage.of(self.known_head),
            received_upto=-1 if self.received is None else self.received.sequence_number,
            missing=tuple(
                MissingObject(kind=item.kind, object_hash=str(item.hash), size_bytes=item.size_bytes)
                for item in missing[:PAGE_MISSING_OBJECTS]
            ),
            missing_count=len(missing),
            problem=self.problem,
        )

    def close(self) -> None:
        """Let go of the lease, the waiting blocks, and what was uploaded."""
        self.lease.close()


class PushedDataset(UploadedPeer):
    """An upload as ``PeerDataset``: everything is here already, and as little trusted as if it were far away."""

    def __init__(self, session: PushSession) -> None:
        self._session = session

    @property
    def arrivals(self) -> Arrivals:
        """See ``UploadedDataset``."""
        return self._session.arrivals

    @property
    def description(self) -> PeerDescription:
        """See ``PeerDataset``."""
        return PeerDescription(url=f"push:{self._session.token_id}", speaks=PeerSpeaks.EXCHANGE)

    async def get_head(self) -> PeerHead:
        """See ``PeerDataset``."""
        return proposed_head(self._session.request)

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """See ``PeerDataset``."""
        first = 0 if self._session.known_head is None else self._session.known_head.sequence_number + 1
        wanted_from = 0 if after is None else after.sequence_number + 1
        if wanted_from < first:
            raise MalformedError("push", expected=f"blocks from {wanted_from}", found=f"blocks from {first}")
        for number, block in enumerate(self._session.iter_blocks(), start=first):
            if wanted_from <= number <= upto.sequence_number:
                yield block

    async def list_key_events(self) -> tuple[bytes, ...]:
        """See ``PeerDataset``."""
        events = self._session.request.key_events
        return () if isinstance(events, msgspec.UnsetType) else events


def proposed_head(request: PushRequest) -> PeerHead:
    """Give the head that a push offers, as a peer's claim."""
    return PeerHead(
        head=request.head.to_head(),
        name=request.name,
        dataset_id=request.to_dataset_id(),
        signed_head=request.signed_head,
    )
