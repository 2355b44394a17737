"""What proves a chain's claims, and signed documents about datasets.

Step records and attestations; who vouches for which head, which keys speak, what is disputed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:  # the store implements these ports, and every command opens the store
    from odf_protocol.statements import Statement


@dataclass(frozen=True, slots=True)
class HeldStepRecord:
    """What fixes the result of one ExecuteTransform block (engine digest, settings, inputs), as it arrived."""

    dataset_id: DatasetId
    sequence_number: int
    block_hash: Multihash
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAttestation:
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
    def of(cls, stated: "Statement", received_at: Timestamp) -> Self:
        """Give the row in which a statement is kept."""
        return cls(
            id=Multihash.of_sha3_256(stated.raw),
            dataset_id=stated.dataset_id,
            first_sequence_number=stated.first.sequence_number,
            last_sequence_number=stated.last.sequence_number,
            last_block_hash=stated.last.hash,
            attester=stated.node,
            raw=stated.raw,
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
