"""Items: the small signed statements that travel by gossip, each read and verified once, before anything else.

==================  ==========================================  ===========================================
kind                statement                                    replaced by
==================  ==========================================  ===========================================
``equivocation``    proof that a key contradicted itself         nothing; one for each two histories is enough
``settlement``      the owner says which history goes on         nothing
``key-event``       a dataset's key names the next one           nothing
``head``            a dataset's key names its newest block       a higher head of the same dataset and key
``attestation``     what a node found when it checked            a later one of the node about the same block
==================  ==========================================  ===========================================

Source: clauses GOSSIP-1 to GOSSIP-4 in ``spec/plug-ins/gossip.md``.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha3_256
from typing import Final

from odf_protocol.acceptance_statements import AcceptanceStatement
from odf_protocol.attestations import Attestation
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.equivocation import EquivocationProof, check_equivocation
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.heads import MAX_HEAD_BYTES, SignedHead, decode_signed_head
from odf_protocol.key_events import MAX_KEY_EVENT_BYTES, KeyEvent, decode_key_event
from odf_protocol.settlements import MAX_SETTLEMENT_BYTES, Settlement, decode_settlement
from odf_protocol.statements import decode_statement
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import VerificationStatement

ITEM_ID_BYTES: Final = 32
_ID_PREFIX: Final = b"odf-node-gossip-item-v1\x00"
_DAY_MS: Final = 86_400_000
_HEADER_BYTES: Final = 96  # key and signature of a signed document (SIG-5)


class ItemKind(StrEnum):
    """What an item is, most urgent first: the order in which items are sent."""

    EQUIVOCATION = "equivocation"
    SETTLEMENT = "settlement"
    KEY_EVENT = "key-event"
    HEAD = "head"
    ATTESTATION = "attestation"


Finding = Attestation | VerificationStatement
"""What a node says it found: by executing steps again, or by checking blocks."""
Statement = SignedHead | Finding | EquivocationProof | Settlement | KeyEvent

_MAX_BYTES: Final = {
    ItemKind.EQUIVOCATION: 256 * 1024,  # guess: two heads take 2 kB; the rest is room for the blocks between them
    ItemKind.SETTLEMENT: MAX_SETTLEMENT_BYTES + _HEADER_BYTES,
    ItemKind.KEY_EVENT: MAX_KEY_EVENT_BYTES + _HEADER_BYTES,
    ItemKind.HEAD: MAX_HEAD_BYTES + _HEADER_BYTES,
    ItemKind.ATTESTATION: 32 * 1024,  # guess: some 60 steps; longer ones are read from the node that holds the dataset
}
MAX_ITEM_BYTES: Final = max(_MAX_BYTES.values())

_LIFETIME_MS: Final[dict[ItemKind, int | None]] = {
    ItemKind.EQUIVOCATION: None,  # what was proved stays proved
    ItemKind.SETTLEMENT: None,  # without it the proof would freeze again
    ItemKind.KEY_EVENT: None,  # the log of a dataset is needed as long as the dataset
    ItemKind.HEAD: 90 * _DAY_MS,  # guess: a dataset that is silent for a season is asked for, not told about
    ItemKind.ATTESTATION: 365 * _DAY_MS,  # guess
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A verified statement, as it travels. Made by ``read_item`` only.

    Attributes:
        kind: What it is.
        id: 32 bytes that name it.
        raw: The statement as received.
        statement: The same, read.
        dataset_id: What it is about.
        signer: Whose word it is; of a proof, the key that contradicted itself.
        slot: Of all items with one slot, a node keeps one.
        rank: Which one: the highest; of equals, the one that came first.
        time_ms: When it was signed, by the signer's clock; None where it does not say.
        expires_ms: From when on nobody keeps or sends it; None: never.
    """

    kind: ItemKind
    id: bytes
    raw: bytes = field(repr=False)
    statement: Statement = field(repr=False)
    dataset_id: DatasetId
    signer: DidKey
    slot: tuple[object, ...]
    rank: tuple[int, ...]
    time_ms: int | None
    expires_ms: int | None


def item_id(kind: ItemKind, raw: bytes) -> bytes:
    """Name an item: SHA3-256 over a fixed text, its kind and its bytes (GOSSIP-2)."""
    name = kind.value.encode("ascii")
    return sha3_256(b"".join((_ID_PREFIX, bytes([len(name)]), name, raw))).digest()


def read_item(kind: ItemKind, raw: bytes) -> Item:
    """Bound, verify and read an item of a stranger.

    Raises:
        MalformedError: Too large, or not a statement of this kind.
        RejectedError: A signature is not good, or the statement breaks its own rules.
        UnsupportedError: A key of another kind.
    """
    if len(raw) > _MAX_BYTES[kind]:
        raise MalformedError(f"gossip item {kind}", expected=f"at most {_MAX_BYTES[kind]} bytes", found=len(raw))
    match kind:
        case ItemKind.HEAD:
            return _of_head(decode_signed_head(raw))
        case ItemKind.KEY_EVENT:
            return _of_key_event(decode_key_event(raw))
        case ItemKind.ATTESTATION:
            return _of_finding(_decode_finding(raw))
        case ItemKind.EQUIVOCATION:
            return _of_proof(check_equivocation(raw))
        case ItemKind.SETTLEMENT:
            return _of_settlement(decode_settlement(raw))


def _of_head(head: SignedHead) -> Item:
    return _item(
        ItemKind.HEAD,
        head,
        signer=head.signer,
        slot=(head.dataset_id, head.signer),
        rank=(head.sequence_number, head.time.unix_ms),
        time=head.time,
        expires=head.expires,
    )


def _of_key_event(event: KeyEvent) -> Item:
    slot = (event.dataset_id, event.signer, event.index)
    return _item(ItemKind.KEY_EVENT, event, signer=event.signer, slot=slot, rank=(0,), time=event.time)


def _decode_finding(raw: bytes) -> Finding:
    stated = decode_statement(raw)
    if isinstance(stated, AcceptanceStatement):
        # It vouches for nothing (POLICY-7): told to everybody it would only look like one more witness.
        raise UnsupportedError("gossip item", found="an acceptance statement", supported="replay, verification")
    return stated


def _of_finding(stated: Finding) -> Item:
    slot = (stated.dataset_id, stated.node, stated.last, isinstance(stated, Attestation))
    return _item(
        ItemKind.ATTESTATION, stated, signer=stated.node, slot=slot, rank=(stated.time.unix_ms,), time=stated.time
    )


def _of_proof(proof: EquivocationProof) -> Item:
    # Heads are renewed, so many pairs of documents show the same two histories.
    slot = (proof.dataset_id, proof.signer, proof.position, frozenset({proof.first, proof.second}))
    return _item(ItemKind.EQUIVOCATION, proof, signer=proof.signer, slot=slot, rank=(0,))


def _of_settlement(stated: Settlement) -> Item:
    slot = (stated.dataset_id, stated.signer, stated.position, stated.keeps)
    return _item(ItemKind.SETTLEMENT, stated, signer=stated.signer, slot=slot, rank=(0,), time=stated.time)


def _item(
    kind: ItemKind,
    statement: Statement,
    *,
    signer: DidKey,
    slot: tuple[object, ...],
    rank: tuple[int, ...],
    time: Timestamp | None = None,
    expires: Timestamp | None = None,
) -> Item:
    time_ms = None if time is None else time.unix_ms
    lifetime_ms = _LIFETIME_MS[kind]
    ends = [] if expires is None else [expires.unix_ms]
    if time_ms is not None and lifetime_ms is not None:
        ends.append(time_ms + lifetime_ms)
    return Item(
        kind=kind,
        id=item_id(kind, statement.raw),
        raw=statement.raw,
        statement=statement,
        dataset_id=statement.dataset_id,
        signer=signer,
        slot=(kind, *slot),
        rank=rank,
        time_ms=time_ms,
        expires_ms=min(ends) if ends else None,
    )
