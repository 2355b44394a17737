"""What proves or disproves a chain's claims: replay records, attestations, refusals."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Evidence that something was refused, so that it can be shown and refused again without the work.

    ``id`` is chosen by the caller and unique. ``reason`` is JSON. ``objects`` (in the object store) are kept as long
    as the refusal is. The dataset need not be held here; block and URL are None where they do not apply.
    """

    id: str
    dataset_id: DatasetId
    sequence_number: int | None
    block_hash: Multihash | None
    source_url: str | None
    reason: bytes
    objects: tuple[Multihash, ...]
    refused_at: Timestamp
