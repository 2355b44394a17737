"""Datasets of others, wherever they are: a node like this one, a plain ODF server, a folder, an upload.

What comes through this port is not trusted. The adapters promise bounds (sizes, counts, times), complete transport and
that an object's bytes have its hash; the chain, the signatures and the rows are for the caller to judge.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self, runtime_checkable

from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

__all__ = [
    "ObjectKind",
    "OnBytes",
    "PackedBlock",
    "PeerDataset",
    "PeerDescription",
    "PeerHead",
    "PeerSpeaks",
    "SearchableHistory",
    "WantedObject",
]

OnBytes = Callable[[int], None]
"""Told how many bytes of objects arrived since the last call; a negative number takes back bytes that were thrown away.

Called on the event loop; must return at once.
"""


class PeerSpeaks(StrEnum):
    """What the other side understands."""

    EXCHANGE = "odf-node exchange"
    SMART = "ODF Smart Transfer Protocol"
    SIMPLE = "ODF Simple Transfer Protocol"
    FOLDER = "ODF repository folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerDescription:
    """Who is there. Plain servers and folders say nothing: ``node_id`` None."""

    url: str
    speaks: PeerSpeaks
    node_id: DidKey | None = None
    software: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerHead:
    """The head that the peer claims.

    ``name`` is what the dataset is called there. ``dataset_id`` and ``kind`` are None where the peer cannot say (plain
    servers, folders): the Seed does. ``signed_head`` is the document as it came, None when nobody signed.
    """

    head: Head
    name: str
    dataset_id: DatasetId | None = None
    kind: DatasetKind | None = None
    signed_head: bytes | None = None


class PeerDataset(Protocol):
    """One dataset at one peer; an asynchronous context manager.

    Every method raises ``PeerUnavailableError`` when the peer does not answer (after retries), ``PeerNotFoundError``
    when it does not have what was asked for, ``PeerForbidsError`` when it wants a token or another one,
    ``PeerLiedError`` when it breaks a rule of the exchange, and MalformedError when an answer cannot be read.
    """

    @property
    def description(self) -> PeerDescription:
        """Who is there."""
        ...

    async def get_head(self) -> PeerHead:
        """Return the newest head that the peer claims."""
        ...

    def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """Yield the blocks after ``after`` (None: from the Seed) up to and including ``upto``, oldest first.

        Their number is right; nothing else about them was checked. Where the peer's chain leaves ours before
        ``after``, the first block does not link to it: the chain rules find that.
        """
        ...

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        """Bring objects into the store, several at once, going on where earlier attempts stopped.

        The caller holds a writing lease. Objects that are in the store count as fetched. When one fails, the others
        are stopped; what arrived is kept for the next attempt.
        """
        ...

    async def list_attestations(self, *, limit: int) -> tuple[bytes, ...]:
        """Return up to ``limit`` statements about the dataset, as they were made; none where the peer knows of none."""
        ...

    async def list_key_events(self) -> tuple[bytes, ...]:
        """Return the dataset's key log as the peer has it, in order; none where the peer knows of none."""
        ...

    async def list_disputes(self) -> tuple[bytes, ...]:
        """Return proofs of equivocation and settlements about the dataset; none where the peer knows of none."""
        ...

    async def __aenter__(self) -> Self:
        """Return the dataset itself."""
        ...

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object, /) -> None:
        """Close connections."""
        ...


class SilentPeer:
    """The part of ``PeerDataset`` about statements, where the protocol has no place for them; nothing is held open."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object, /) -> None:
        """See ``PeerDataset``."""

    async def list_attestations(self, *, limit: int) -> tuple[bytes, ...]:  # noqa: ARG002 - the port's signature
        """See ``PeerDataset``; there are none."""
        return ()

    async def list_key_events(self) -> tuple[bytes, ...]:
        """See ``PeerDataset``; there are none."""
        return ()

    async def list_disputes(self) -> tuple[bytes, ...]:
        """See ``PeerDataset``; there are none."""
        return ()


@runtime_checkable
class SearchableHistory(Protocol):
    """A dataset at a peer that can be asked for single hashes, as only some can (EX-60)."""

    async def find_hash(self, sequence_number: int) -> Multihash | None:
        """Return what the peer says is the hash of its block with this number; None: it says it has none."""
        ...


@runtime_checkable
class SeveralSources(Protocol):
    """A dataset that is read from several nodes at once (EX-41)."""

    @property
    def lies(self) -> tuple[PeerLiedError, ...]:
        """What nodes sent that contradicts itself or the block: each was put aside, once."""
        ...


class OpenPeer(Protocol):
    """Opens addresses."""

    async def __call__(self, url: str, *, also: Sequence[str] = ()) -> PeerDataset:
        """Open the dataset at an address; ``also`` says where else it can be had, to read large files from all.

        Raises:
            PeerUnavailableError: Nobody answers there.
            UsageError: It is no address.
        """
        ...
