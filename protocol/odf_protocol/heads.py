"""Signed heads: a dataset's key says which block is the newest one, and so vouches for the whole chain below it.

Source: clauses HEAD-1 to HEAD-7, HEAD-10 and HEAD-11 in ``spec/extensions/heads.md``.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from odf_protocol.canonical_json import Count, Document, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.key_history import KeyHistory
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_readable
from odf_protocol.timestamp import Timestamp

MAX_HEAD_BYTES: Final = 1024
"""Payload of a signed head. All fields at their longest take about 370 bytes; the rest is room for a later version."""


class _Head(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["head"]
    dataset: Text
    sequence_number: Count
    block_hash: Text
    time: Text
    expires: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHead:
    """A head whose signature is good; made by ``decode_signed_head`` and ``verify_head`` only.

    Attributes:
        dataset_id: Which chain.
        sequence_number: Of its newest block.
        block_hash: Of its newest block.
        time: When it was signed, by the signer's clock.
        expires: From when on it must not be taken for the newest any more; None for no such promise.
        signer: Whose key signed.
        raw: The document as received.
    """

    dataset_id: DatasetId
    sequence_number: int
    block_hash: Multihash
    time: Timestamp
    expires: Timestamp | None
    signer: DidKey
    raw: bytes = field(repr=False)

    def is_expired(self, now: Timestamp) -> bool:
        """Say whether the signer's promise that this is the newest head has run out."""
        return self.expires is not None and self.expires <= now


@dataclass(frozen=True, slots=True)
class Renewal:
    """How often a publisher signs its heads again, and for how long they hold.

    Attributes:
        every_s: Seconds between two documents about one block.
        valid_s: Seconds from ``time`` to ``expires``; more than ``every_s``.
    """

    every_s: int
    valid_s: int

    def __post_init__(self) -> None:
        if not 0 < self.every_s < self.valid_s:
            raise ValueError(f"expected heads that hold longer than {self.every_s} s, found {self.valid_s} s")

    def is_due(self, head: SignedHead, now: Timestamp) -> bool:
        """Say whether a head is to be signed again.

        One that is dated ahead by more than it would hold was signed by a clock that was wrong then, or is now: until
        its time comes nobody else would take it for anything, and readers who have it would miss nothing newer.
        """
        return head.time.seconds - now.seconds > self.valid_s or self.find_due_time(head) <= now

    def find_due_time(self, head: SignedHead) -> Timestamp:
        """Say from when on a head is to be signed again: never at its own time or before, so that order is kept."""
        due_s = head.time.seconds + 1
        if head.expires is not None:
            due_s = max(due_s, min(head.time.seconds, head.expires.seconds - self.valid_s) + self.every_s)
        return Timestamp(due_s)


def sign_head(
    private_key: bytes,
    *,
    dataset_id: DatasetId,
    sequence_number: int,
    block_hash: Multihash,
    time: Timestamp,
    expires: Timestamp | None = None,
) -> bytes:
    """Sign a head and return the document as stored and sent.

    Raises:
        ValueError: Something that no head can say, such as an expiry before ``time``.
    """
    head = _Head(
        version=1,
        type="head",
        dataset=str(dataset_id),
        sequence_number=sequence_number,
        block_hash=str(block_hash),
        time=str(time),
        expires=None if expires is None else str(expires),
    )
    return sign_readable(private_key, Purpose.HEAD, encode_canonical(head), decode_signed_head)


def decode_signed_head(raw: bytes) -> SignedHead:
    """Verify and read a signed head; whether its signer may speak for the dataset is another question.

    Raises:
        MalformedError: Not a signed head.
        RejectedError: Its signature or its content breaks a rule.
    """
    document = SignedDocument.decode(raw, Purpose.HEAD, max_payload_bytes=MAX_HEAD_BYTES)
    head = decode_canonical(document.payload, _Head, what="head", max_bytes=MAX_HEAD_BYTES)
    time = parse_exact(Timestamp, head.time, "head time")
    expires = None if head.expires is None else parse_exact(Timestamp, head.expires, "head expiry")
    if expires is not None and expires <= time:
        raise RejectedError("HEAD-3 expires-after-signing", expected=f"after {time}", found=expires)
    block_hash = parse_exact(Multihash, head.block_hash, "head block hash")
    if block_hash.code != SHA3_256:
        raise RejectedError("HEAD-2 block-hash-is-sha3-256", expected=hex(SHA3_256), found=hex(block_hash.code))
    return SignedHead(
        dataset_id=parse_exact(DatasetId, head.dataset, "head dataset"),
        sequence_number=head.sequence_number,
        block_hash=block_hash,
        time=time,
        expires=expires,
        signer=document.signer,
        raw=bytes(raw),
    )


def verify_head(raw: bytes, dataset_id: DatasetId, *, keys: KeyHistory | None = None) -> SignedHead:
    """Read a signed head that must be about a dataset and by a key that speaks for it (HEAD-4).

    Args:
        raw: The document, untrusted.
        dataset_id: The dataset it must be about.
        keys: The dataset's keys; None: it never changed the key it began with.

    Raises:
        MalformedError: Not a signed head.
        RejectedError: Of another dataset, by another key, or with a bad signature.
    """
    head = decode_signed_head(raw)
    if head.dataset_id != dataset_id:
        raise RejectedError("HEAD-4 head-of-this-dataset", expected=dataset_id, found=head.dataset_id)
    history = KeyHistory.start(dataset_id) if keys is None else keys
    history.require_head(head.signer, head.sequence_number, head.block_hash)
    return head
