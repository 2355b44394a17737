"""What proves a chain's claims: replay records and attestations."""

from dataclasses import dataclass
from enum import StrEnum

from odf_node.ports.datasets import Head
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


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
