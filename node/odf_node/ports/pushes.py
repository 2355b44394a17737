"""Pushes, from both ends: who sends a dataset, and the service that judges what others send."""

from dataclasses import dataclass
from typing import BinaryIO, Protocol

from odf_node.ports.objects import Arrivals
from odf_node.ports.peer_client import PeerDataset, PeerHead
from odf_node.records.access import ReadGrants
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash


class UploadedDataset(PeerDataset, Protocol):
    """What was pushed, as a peer's dataset."""

    @property
    def arrivals(self) -> Arrivals:
        """The objects that came with it."""
        ...


class PushReceiver(Protocol):
    """Judges uploads by the same rules as pulls: an upload is a peer's dataset that happens to be here already.

    Both raise errors of the tree in ``odf_protocol.errors``; RejectedError, MalformedError and UnsupportedError reject
    the push, others mean that it could not be judged. A ``report`` attribute of an error goes to the pusher.
    """

    async def consider(self, proposed: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        """Reject early what can never be accepted (an own dataset, a name that is taken), before anything is sent."""
        ...

    async def receive(
        self, proposed: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """Verify the offered dataset and accept it, or raise.

        ``actor`` is who asked, for the audit log; ``reads`` is what they may know of this node: what they may not read
        is treated as if it were not here (EX-83). A dataset that is new here is shown to others if ``published``; with
        ``force`` another history may take the place of the one held here (ACCEPT-10).
        """
        ...


class SentObjects(Protocol):
    """The objects that may be sent in a push, and no others: the receiver says which ones it lacks (EX-87)."""

    def get_size(self, object_hash: Multihash) -> int:
        """Return the object's length in bytes.

        Raises:
            RejectedError: It is no object of what is pushed.
            ObjectNotFoundError: It is not here, or the dataset does not have it.
        """
        ...

    def open(self, object_hash: Multihash) -> BinaryIO:
        """Open the object for reading; errors as ``get_size``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedHead:
    """The head to be offered, with the document in which the dataset's key vouches for it.

    Where the other side has another history, ``replaces_history`` asks to replace it; where the dataset is new to it,
    ``is_public`` asks to show it to everybody. Both are for receivers of ODF's Smart Transfer Protocol; others decide
    alone.
    """

    dataset_id: DatasetId
    head: Head
    signed_head: bytes | None
    key_events: tuple[bytes, ...] = ()
    """The dataset's key log; receivers of ODF's Smart Transfer Protocol cannot be told."""
    with_records: bool = False
    """Whether step records are sent: they name the files of the inputs (EX-84)."""
    replaces_history: bool = False
    is_public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOutcome:
    """An accepted push. ``known_head`` is what the receiver had before, None when the dataset was new to it."""

    url: str
    known_head: Head | None
    sent_blocks: int
    sent_bytes: int
    """Of objects."""
    is_verified: bool = True
    """Whether the receiver promises to have verified what it accepted."""

    @property
    def was_up_to_date(self) -> bool:
        """Whether there was nothing to send."""
        return self.known_head is not None and self.sent_blocks == 0
