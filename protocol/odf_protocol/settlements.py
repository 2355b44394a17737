"""Settling an equivocation: the owner says which of two histories goes on, and the proof of both stays.

A dataset with a proof against it is frozen. Its key cannot take back what it signed, but it can say which history it
stands by; whoever holds that one may follow it again. Two settlements of one proof that keep different histories are
none: then the dataset stays frozen for ever.

Source: clauses EQUIV-9 to EQUIV-13 in ``spec/extensions/equivocation.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.canonical_json import Count, Document, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.equivocation import EquivocationProof
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_document
from odf_protocol.timestamp import Timestamp

MAX_SETTLEMENT_BYTES: Final = 4096
"""All fields at their longest take about 1.5 kB."""


class _Settlement(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["settlement"]
    dataset: Text
    proof: Text
    position: Count
    keeps: Text
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    time: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """An owner's decision; made by ``decode_settlement`` only, so the signature is good.

    Attributes:
        dataset_id: Whose histories.
        proof: Hash of the proof that is settled.
        position: Block number at which the histories differ.
        keeps: What the history that goes on has there.
        reason: In the owner's words, for people.
        time: By the owner's clock.
        signer: Whose key signed.
        raw: The document as received.
    """

    dataset_id: DatasetId
    proof: Multihash
    position: int
    keeps: Multihash
    reason: str
    time: Timestamp
    signer: DidKey
    raw: bytes = field(repr=False)

    def settles(self, proof: EquivocationProof) -> bool:
        """Say whether this is by the key that is proved against, for one of the two histories that a proof shows.

        The proof need not be the one that the owner saw: other documents can show the same two histories (EQUIV-11).
        """
        return (
            self.dataset_id == proof.dataset_id
            and self.signer == proof.signer
            and self.position == proof.position
            and self.keeps in {proof.first, proof.second}
        )


def proof_hash(proof: EquivocationProof) -> Multihash:
    """Return the hash by which a proof is named."""
    return Multihash.of_sha3_256(proof.raw)


def sign_settlement(
    private_key: bytes, proof: EquivocationProof, *, keeps: Multihash, reason: str, time: Timestamp
) -> bytes:
    """Settle a proof; ``keeps`` is one of the two hashes that it shows.

    Raises:
        ValueError: Something that settles nothing.
    """
    payload = encode_canonical(
        _Settlement(
            version=1,
            type="settlement",
            dataset=str(proof.dataset_id),
            proof=str(proof_hash(proof)),
            position=proof.position,
            keeps=str(keeps),
            reason=reason,
            time=str(time),
        )
    )
    raw = sign_document(private_key, Purpose.SETTLEMENT, payload).to_bytes()
    if not decode_settlement(raw).settles(proof):
        raise ValueError("a settlement is by the key that is proved against, for one of the two histories")
    return raw


def decode_settlement(raw: bytes) -> Settlement:
    """Verify and read a settlement.

    Raises:
        MalformedError: Not a settlement.
        RejectedError: Its signature is not good.
    """
    document = SignedDocument.decode(raw, Purpose.SETTLEMENT, max_payload_bytes=MAX_SETTLEMENT_BYTES)
    stated = decode_canonical(document.payload, _Settlement, what="settlement", max_bytes=MAX_SETTLEMENT_BYTES)
    return Settlement(
        dataset_id=parse_exact(DatasetId, stated.dataset, "settlement dataset"),
        proof=parse_exact(Multihash, stated.proof, "settled proof"),
        position=stated.position,
        keeps=parse_exact(Multihash, stated.keeps, "kept block"),
        reason=stated.reason,
        time=parse_exact(Timestamp, stated.time, "settlement time"),
        signer=document.signer,
        raw=bytes(raw),
    )


def find_kept_history(proof: EquivocationProof, settlements: Iterable[Settlement]) -> Multihash | None:
    """Return the block that the owner stands by, or None: nobody has settled, or twice and differently (EQUIV-12)."""
    kept = {settlement.keeps for settlement in settlements if settlement.settles(proof)}
    return kept.pop() if len(kept) == 1 else None
