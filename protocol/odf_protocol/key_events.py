"""Changing the key that speaks for a dataset: each key names the next one, in a log that only grows.

A dataset's identity stays what it was, the key it began with. That key speaks for blocks from number 0 on; each event
is signed by the key in force, names the next key, and says from which block number on the next key speaks.

Source: clauses KEY-1 to KEY-8 in ``spec/extensions/keys.md``.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, Self

from odf_protocol.canonical_json import Count, Document, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, public_key_of, sign_document
from odf_protocol.timestamp import Timestamp

__all__ = ["MAX_KEY_EVENT_BYTES", "KeyEvent", "KeyHistory", "KeyPeriod", "decode_key_event", "sign_key_event"]

MAX_KEY_EVENT_BYTES: Final = 1024  # all fields at their longest take about 450 bytes
_MAX_EVENTS: Final = 1000  # guess: a change a month for eighty years


class _KeyEvent(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["key-event"]
    dataset: Text
    index: Count
    previous: Text | None = None
    new_key: Text
    first_sequence_number: Count
    time: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEvent:
    """One change of key whose signature is good; whether its signer was in force, ``KeyHistory.extend`` says.

    Attributes:
        dataset_id: Whose key changes.
        index: Position in the log, from 0.
        previous: Hash of the payload before; None at 0.
        new_key: Speaks from now on.
        first_sequence_number: The first block that the new key speaks for.
        time: By the signer's clock.
        signer: The key before.
        hash: SHA3-256 of the payload.
        raw: The document as received.
    """

    dataset_id: DatasetId
    index: int
    previous: Multihash | None
    new_key: DidKey
    first_sequence_number: int
    time: Timestamp
    signer: DidKey
    hash: Multihash
    raw: bytes


@dataclass(frozen=True, slots=True)
class KeyPeriod:
    """A key and the first block it speaks for."""

    key: DidKey
    first_sequence_number: int


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The keys that have spoken for a dataset, oldest first.

    Attributes:
        dataset_id: Whose keys.
        periods: The first is the dataset's own key from block 0.
        last_event: Hash of the newest event's payload; None before the first.
    """

    dataset_id: DatasetId
    periods: tuple[KeyPeriod, ...]
    last_event: Multihash | None = None

    @classmethod
    def start(cls, dataset_id: DatasetId) -> Self:
        """Return the history of a dataset that has never changed its key."""
        return cls(dataset_id, (KeyPeriod(DidKey(dataset_id.public_key), 0),))

    @property
    def current_key(self) -> DidKey:
        """Who may sign the next head and the next event."""
        return self.periods[-1].key

    def key_at(self, sequence_number: int) -> DidKey:
        """Return the key that speaks for a block (KEY-5)."""
        return next(p.key for p in reversed(self.periods) if p.first_sequence_number <= sequence_number)

    def extend(self, raw: bytes) -> Self:
        """Take the next event of the log.

        Args:
            raw: A signed key event, untrusted.

        Raises:
            MalformedError: Not a signed key event.
            RejectedError: Not the next event of this log, or not signed by the key in force.
        """
        event = decode_key_event(raw)
        index = len(self.periods) - 1
        newest = self.periods[-1]
        if event.dataset_id != self.dataset_id:
            raise RejectedError("KEY-2 event-of-this-dataset", expected=self.dataset_id, found=event.dataset_id)
        if index >= _MAX_EVENTS:
            raise RejectedError("KEY-8 events-in-a-log", expected=f"at most {_MAX_EVENTS}", found=index + 1)
        if (event.index, event.previous) != (index, self.last_event):
            expected, found = f"{index} after {self.last_event}", f"{event.index} after {event.previous}"
            raise RejectedError("KEY-3 events-link", expected=expected, found=found)
        if event.signer != newest.key:
            raise RejectedError("KEY-4 signed-by-the-key-in-force", expected=newest.key, found=event.signer)
        if event.first_sequence_number <= newest.first_sequence_number:
            expected = f"after {newest.first_sequence_number}"
            raise RejectedError("KEY-5 periods-ascend", expected=expected, found=event.first_sequence_number)
        if event.new_key in (period.key for period in self.periods):
            raise RejectedError("KEY-6 keys-do-not-return", found=event.new_key)
        period = KeyPeriod(event.new_key, event.first_sequence_number)
        return replace(self, periods=(*self.periods, period), last_event=event.hash)


def sign_key_event(
    private_key: bytes,
    history: KeyHistory,
    *,
    new_key: DidKey,
    first_sequence_number: int,
    time: Timestamp,
) -> bytes:
    """Hand a dataset over to another key.

    Args:
        private_key: The key in force.
        history: All events so far.
        new_key: Speaks from now on.
        first_sequence_number: Number of the next block to be written.
        time: Now.

    Raises:
        ValueError: The private key is not the one in force, or the event breaks a rule.
    """
    if DidKey(public_key_of(private_key)) != history.current_key:
        raise ValueError(f"a change of key is signed by the key in force, {history.current_key}")
    payload = encode_canonical(
        _KeyEvent(
            version=1,
            type="key-event",
            dataset=str(history.dataset_id),
            index=len(history.periods) - 1,
            previous=None if history.last_event is None else str(history.last_event),
            new_key=str(new_key),
            first_sequence_number=first_sequence_number,
            time=str(time),
        )
    )
    raw = sign_document(private_key, Purpose.KEY_EVENT, payload).to_bytes()
    try:
        history.extend(raw)
    except RejectedError as error:
        raise ValueError(str(error)) from error
    return raw


def decode_key_event(raw: bytes) -> KeyEvent:
    """Verify and read one event of a log.

    Raises:
        MalformedError: Not a signed key event.
        RejectedError: Its signature is not good.
    """
    document = SignedDocument.decode(raw, Purpose.KEY_EVENT, max_payload_bytes=MAX_KEY_EVENT_BYTES)
    said = decode_canonical(document.payload, _KeyEvent, what="key event", max_bytes=MAX_KEY_EVENT_BYTES)
    return KeyEvent(
        dataset_id=parse_exact(DatasetId, said.dataset, "key event dataset"),
        index=said.index,
        previous=None if said.previous is None else parse_exact(Multihash, said.previous, "key event hash"),
        new_key=parse_exact(DidKey, said.new_key, "new key"),
        first_sequence_number=said.first_sequence_number,
        time=parse_exact(Timestamp, said.time, "key event time"),
        signer=document.signer,
        hash=Multihash.of_sha3_256(document.payload),
        raw=bytes(raw),
    )
