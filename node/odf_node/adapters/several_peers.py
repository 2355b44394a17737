"""A dataset at several nodes: its chain from the first, its large objects from all of them at once (EX-41)."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from odf_node.adapters.exchange_peer import ExchangePeer
from odf_node.adapters.several_sources import fetch_from_several
from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.object_parts import LEAF_BYTES
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

SHARED_BYTES: Final = 4 * LEAF_BYTES
"""Objects from this size on are read from several peers.  # guess: below, asking for the list costs more"""


class SeveralPeers:
    """``PeerDataset`` over several nodes; a node that lied about one object is not asked for others."""

    def __init__(self, peers: Sequence[ExchangePeer], scratch: Path) -> None:
        """Make it of open peers, which it closes; ``scratch`` is a folder on the store's disk, made when needed."""
        self._peers = peers
        self._scratch = scratch
        self._lies: dict[int, PeerLiedError] = {}

    @property
    def description(self) -> PeerDescription:
        """See ``PeerDataset``: the first one."""
        return self._peers[0].description

    @property
    def lies(self) -> tuple[PeerLiedError, ...]:
        """See ``SeveralSources``."""
        return tuple(self._lies.values())

    async def get_head(self) -> PeerHead:
        return await self._peers[0].get_head()

    def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        return self._peers[0].iter_blocks(after=after, upto=upto)

    async def find_hash(self, sequence_number: int) -> Multihash | None:
        """See ``SearchableHistory``: of the one that the chain is read from."""
        return await self._peers[0].find_hash(sequence_number)

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        """See ``PeerDataset``; large ones one after the other, each from all peers."""
        large = [item for item in wanted if item.size_bytes >= SHARED_BYTES and not objects.has(item.hash)]
        names = {item.hash for item in large}
        small = [item for item in wanted if item.hash not in names]
        await self._fetch_small(small, objects, on_bytes)
        if not large:
            return
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="ranges-", dir=self._scratch) as folder:
            for item in {item.hash: item for item in large}.values():
                asked = [number for number in range(len(self._peers)) if number not in self._lies]
                sources = [self._peers[number].as_source(item) for number in asked]
                try:
                    await fetch_from_several(sources, item, objects, Path(folder), on_bytes)
                finally:
                    reported = zip(asked, sources, strict=True)
                    self._lies |= {number: source.lie for number, source in reported if source.lie is not None}

    async def _fetch_small(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None
    ) -> None:
        """Ask one peer after the other: one may hold the metadata alone and be as honest as the next (PART-8)."""
        *others, last = self._peers
        for peer in others:
            try:
                await peer.fetch_objects(wanted, objects, on_bytes)
            except PeerNotFoundError:
                wanted = [item for item in wanted if not objects.has(item.hash)]
            else:
                return
        await last.fetch_objects(wanted, objects, on_bytes)

    async def list_key_events(self) -> tuple[bytes, ...]:
        return await self._peers[0].list_key_events()

    async def list_disputes(self) -> tuple[bytes, ...]:
        return await self._peers[0].list_disputes()

    async def list_attestations(self, *, limit: int) -> tuple[bytes, ...]:
        return await self._peers[0].list_attestations(limit=limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        async with AsyncExitStack() as stack:
            for peer in self._peers:
                stack.push_async_exit(peer)
