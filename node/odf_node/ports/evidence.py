"""What proves a chain's claims: replay records and attestations."""

from dataclasses import dataclass

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
