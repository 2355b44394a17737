"""What a push brings and how it ends, for the side that pushes."""

from dataclasses import dataclass
from typing import BinaryIO, Protocol

from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash


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
    """Whether replay records are sent: they name the files of the inputs (EX-84)."""
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
