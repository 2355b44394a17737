"""What proves a chain's claims, and signed documents about datasets.

Replay records and attestations; who vouches for which head, which keys speak, what is disputed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, Self

from odf_node.ports.datasets import SignedHead
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:  # the store implements these ports, and every command opens the store
    from odf_protocol.statements import Statement


@dataclass(frozen=True, slots=True)
class ReplayRecord:
    """What fixes the result of one ExecuteTransform block (engine digest, settings, inputs), as it arrived."""

    dataset_id: DatasetId
    sequence_number: int
    block_hash: Multihash
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """Somebody's signed statement about blocks ``first`` to ``last`` (inclusive) of a dataset.

    ``id`` is the SHA3-256 of ``raw``, the document as it arrived. The dataset need not be held here.
    """

    id: Multihash
    dataset_id: DatasetId
    first_sequence_number: int
    last_sequence_number: int
    last_block_hash: Multihash
    attester: DidKey
    raw: bytes
    received_at: Timestamp

    @classmethod
    def of(cls, said: "Statement", received_at: Timestamp) -> Self:
        """Give the row in which a statement is kept."""
        return cls(
            id=Multihash.of_sha3_256(said.raw),
            dataset_id=said.dataset_id,
            first_sequence_number=said.first.sequence_number,
            last_sequence_number=said.last.sequence_number,
            last_block_hash=said.last.hash,
            attester=said.node,
            raw=said.raw,
            received_at=received_at,
        )


class DocumentKind(StrEnum):
    """What a kept document is."""

    EQUIVOCATION = "equivocation"
    SETTLEMENT = "settlement"
    KEY_EVENT = "key-event"


@dataclass(frozen=True, slots=True)
class EvidenceDocument:
    """A document about a dataset that proves itself, as it arrived; the dataset need not be held here."""

    kind: DocumentKind
    dataset_id: DatasetId
    raw: bytes
    received_at: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLogChange:
    """New key events of a dataset, with what must become true with them or not at all.

    Attributes:
        dataset_id: Whose keys; the dataset need not be held here.
        raws: The events, as they were made.
        known: How many events were kept when these were judged.
        received_at: Now.
        expected_head: Of an own change: the head that it was made for; None: any.
        signed_head: The document in which the new key vouches for that head.
        forgets_seen_head: The newest head that was met is one that nobody may vouch for any more.
        pinned_key: Who speaks for the dataset now; None leaves the pin as it is.
    """

    dataset_id: DatasetId
    raws: tuple[bytes, ...]
    known: int
    received_at: Timestamp
    expected_head: Multihash | None = None
    signed_head: bytes | None = None
    forgets_seen_head: bool = False
    pinned_key: DidKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenHead:
    """The newest signed head that was ever met for a dataset, whether its blocks are held or not."""

    dataset_id: DatasetId
    sequence_number: int
    block_hash: Multihash
    raw: bytes
    source: str
    seen_at: Timestamp


@dataclass(frozen=True, slots=True)
class Verified:
    """How far a dataset was verified: everything up to ``head`` held, with all steps re-executed where ``replayed``.

    ``chain_state`` is the state of the chain rules there.
    """

    dataset_id: DatasetId
    head: Head
    replayed: bool
    chain_state: bytes
    verified_at: Timestamp


class EvidenceStore(Protocol):
    """Replay records, attestations, and how far this node verified."""

    def find_replay_record(self, dataset_id: DatasetId, block_hash: Multihash) -> ReplayRecord | None:
        """Return the replay record of an ExecuteTransform block, or None when it came without."""
        ...

    def iter_replay_records(self, dataset_id: DatasetId, *, after: int, upto: int) -> Iterator[tuple[int, bytes]]:
        """Yield sequence number and replay record of blocks above ``after`` and not above ``upto``, in order."""
        ...

    def put_attestation(self, attestation: Attestation) -> bool:
        """Keep an attestation; say whether it is new."""
        ...

    def iter_attestations(self, dataset_id: DatasetId) -> Iterator[Attestation]:
        """Yield attestations about the dataset, in order of arrival."""
        ...

    def list_attestations_after(self, arrival: int, *, limit: int) -> tuple[tuple[int, bytes], ...]:
        """Return attestations that arrived after a place, with their places, oldest first."""
        ...

    def put_verified(self, verified: Verified) -> None:
        """Remember how far a dataset was verified, instead of what was remembered before."""
        ...

    def find_verified(self, dataset_id: DatasetId) -> Verified | None:
        """Return how far a dataset was verified, or None."""
        ...


class DocumentStore(Protocol):
    """Signed heads of datasets that are here; of any: key events, proofs, settlements, and the newest head met."""

    def find_signed_head(self, dataset_id: DatasetId) -> SignedHead | None:
        """Return the document that vouches for the present head, or None when there is none."""
        ...

    def iter_signed_heads(self, dataset_id: DatasetId) -> Iterator[SignedHead]:
        """Yield every signed head ever committed or added for the dataset, by sequence number."""
        ...

    def put_signed_head(self, signed_head: SignedHead, *, known_key_events: int | None = None) -> None:
        """Keep a document about a block of the chain; a different document for the same block stays beside it.

        Args:
            signed_head: What is kept.
            known_key_events: How many key events its signer, or who checked it, knew; None: whatever there are.

        Raises:
            BlockNotFoundError: The chain has no such block.
            KeyLogMovedError: There are others by now.
        """
        ...

    def list_head_documents(self) -> dict[DatasetId, int]:
        """Return for each dataset with a signed head a number that changes when another document counts."""
        ...

    def put_seen_head(self, head: SeenHead) -> bool:
        """Remember a head if it is newer than the one remembered; say whether it was."""
        ...

    def find_seen_head(self, dataset_id: DatasetId) -> SeenHead | None:
        """Return the newest head that was ever met for a dataset, or None."""
        ...

    def put_document(self, document: EvidenceDocument) -> bool:
        """Keep a document that proves itself; say whether it is new. It stays when the dataset is deleted."""
        ...

    def iter_documents(self, dataset_id: DatasetId, kind: DocumentKind) -> Iterator[EvidenceDocument]:
        """Yield documents of a kind about a dataset, in order of arrival."""
        ...

    def list_subjects(self, kind: DocumentKind) -> frozenset[DatasetId]:
        """Return the datasets for which ``iter_documents`` yields something."""
        ...

    def add_key_events(self, change: KeyLogChange) -> None:
        """Add key events to those of a dataset, in one step with what goes with them; like documents they stay.

        Raises:
            KeyLogMovedError: Other events were added since ``change.known`` were read; nothing was written.
            HeadMovedError: The chain's head is not ``change.expected_head``; nothing was written.
        """
        ...
