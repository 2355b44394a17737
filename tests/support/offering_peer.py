"""A peer in the same process: offers a ``PeerChain`` over the port, truthfully or not."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead, PeerSpeaks
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError
from odf_node.records.errors import ObjectMismatchError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from support.offers import PeerChain

Hook = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    pass


@dataclass
class OfferingPeer:
    """``PeerDataset`` on a chain; ``before_blocks`` and ``before_objects`` run while the other side is at work."""

    chain: PeerChain
    states_identity: bool = True
    has_signatures: bool = True
    before_blocks: Hook = _nothing
    before_objects: Hook = _nothing
    statements: tuple[bytes, ...] = ()
    disputes: tuple[bytes, ...] = ()
    key_events: tuple[bytes, ...] = ()
    arrivals: Any = None
    asked_after: list[Head | None] = field(default_factory=list)

    @property
    def description(self) -> PeerDescription:
        return PeerDescription(url="http://peer.example/cities", speaks=PeerSpeaks.SIMPLE)

    async def get_head(self) -> PeerHead:
        return PeerHead(
            head=self.chain.head,
            name=self.chain.name,
            dataset_id=self.chain.id if self.states_identity else None,
            signed_head=self.chain.signed_head() if self.has_signatures else None,
        )

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        self.asked_after.append(after)
        await self.before_blocks()
        first = 0 if after is None else after.sequence_number + 1
        chain = self.chain
        for number in range(first, upto.sequence_number + 1):
            yield PackedBlock(chain.blocks[number].raw, chain.signatures[number], chain.step_records[number])

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        await self.before_objects()
        for item in wanted:
            if item.hash not in self.chain.files:
                raise PeerNotFoundError("here", f"object {item.hash}")
            with objects.stage() as staged:
                staged.write(self.chain.files[item.hash])
                try:
                    objects.put(staged, item.hash)
                except ObjectMismatchError as error:
                    raise PeerLiedError("here", "EX-12 object-hash", expected=item.hash, found=error.found) from error

    async def list_attestations(self, *, limit: int) -> tuple[bytes, ...]:
        return self.statements[:limit]

    async def list_disputes(self) -> tuple[bytes, ...]:
        return self.disputes

    async def list_key_events(self) -> tuple[bytes, ...]:
        return self.key_events

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        pass
