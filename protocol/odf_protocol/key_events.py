"""Key events: signed statements in which a dataset's keys name the next ones, in a log that only grows.

=================  ==========================================  =======================================================
change             signed by                                   says
=================  ==========================================  =======================================================
``rotation``       the key in force                            which key speaks from which block on
``recovery-key``   the key in force; once there is a recovery  which key, kept offline, may take the dataset back
                   key, that one
``recovery``       the recovery key                            that the key in force was stolen: from which block on it
                   is not believed, which history is kept, and which key speaks after it
=================  ==========================================  =======================================================

Source: clauses KEY-1 to KEY-4 in ``spec/extensions/keys.md``.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from odf_protocol.canonical_json import Count, Document, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_readable
from odf_protocol.timestamp import Timestamp

MAX_KEY_EVENT_BYTES: Final = 1024  # all fields at their longest take about 650 bytes


class KeyChange(StrEnum):
    """What an event changes."""

    ROTATION = "rotation"
    RECOVERY_KEY = "recovery-key"
    RECOVERY = "recovery"


class _KeyEvent(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["key-event"]
    change: Literal["rotation", "recovery-key", "recovery"]
    dataset: Text
    index: Count
    previous: Text | None = None
    new_key: Text | None = None
    first_sequence_number: Count | None = None
    recovery_key: Text | None = None
    stolen_from: Count | None = None
    keeps: Text | None = None
    time: Text


_FIELDS: Final = {
    KeyChange.ROTATION: ({"new_key", "first_sequence_number"}, frozenset[str]()),
    KeyChange.RECOVERY_KEY: ({"recovery_key"}, frozenset[str]()),
    KeyChange.RECOVERY: (
        {"new_key", "first_sequence_number", "stolen_from", "keeps"},
        frozenset({"recovery_key"}),
    ),
}
"""Per change: the fields it has, and those it may have (KEY-1)."""
_OPTIONAL: Final = ("new_key", "first_sequence_number", "recovery_key", "stolen_from", "keeps")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEvent:
    """One event whose signature is good; whether its signer was entitled to it, ``KeyHistory.extend`` says.

    Attributes:
        change: What it changes.
        dataset_id: Whose keys.
        index: Position in the log, from 0.
        previous: Hash of the payload before; None at 0.
        new_key: Speaks from now on; None where only the recovery key changes.
        first_sequence_number: The first block that the new key speaks for; None without one.
        recovery_key: May take the dataset back from now on; None: as before.
        stolen_from: Of a recovery: the first block that whoever stole the key may have signed.
        keeps: Of a recovery: hash of the block before ``first_sequence_number``, in the history that goes on.
        time: By the signer's clock.
        signer: Whose key signed.
        hash: SHA3-256 of the payload.
        raw: The document as received.
    """

    change: KeyChange
    dataset_id: DatasetId
    index: int
    previous: Multihash | None
    new_key: DidKey | None = None
    first_sequence_number: int | None = None
    recovery_key: DidKey | None = None
    stolen_from: int | None = None
    keeps: Multihash | None = None
    time: Timestamp
    signer: DidKey
    hash: Multihash
    raw: bytes = field(repr=False)

    @property
    def named_keys(self) -> tuple[DidKey, ...]:
        """The keys that may speak because of this event, at what is theirs to say."""
        return tuple(key for key in (self.new_key, self.recovery_key) if key is not None)

    def explain(self) -> str:
        """Say in one sentence what the event changes."""
        match self.change:
            case KeyChange.ROTATION:
                return f"handed the dataset to {self.new_key} from block {self.first_sequence_number} on"
            case KeyChange.RECOVERY_KEY:
                return f"named {self.recovery_key} as the key that may take the dataset back"
            case KeyChange.RECOVERY:
                return (
                    f"took the dataset back: its key was stolen, block {self.stolen_from} is the first it may have "
                    f"been misused for; {self.new_key} speaks from block {self.first_sequence_number} on"
                )


def sign_event(
    private_key: bytes,
    change: KeyChange,
    dataset_id: DatasetId,
    *,
    index: int,
    previous: Multihash | None,
    time: Timestamp,
    new_key: DidKey | None = None,
    first_sequence_number: int | None = None,
    recovery_key: DidKey | None = None,
    stolen_from: int | None = None,
    keeps: Multihash | None = None,
) -> bytes:
    """Sign an event, whatever the log says about it; ``key_logs`` has what honest owners use.

    Raises:
        ValueError: Fields that the change does not have, or lacks.
    """
    payload = encode_canonical(
        _KeyEvent(
            version=1,
            type="key-event",
            change=change.value,
            dataset=str(dataset_id),
            index=index,
            previous=None if previous is None else str(previous),
            new_key=None if new_key is None else str(new_key),
            first_sequence_number=first_sequence_number,
            recovery_key=None if recovery_key is None else str(recovery_key),
            stolen_from=stolen_from,
            keeps=None if keeps is None else str(keeps),
            time=str(time),
        )
    )
    return sign_readable(private_key, Purpose.KEY_EVENT, payload, decode_key_event)


def decode_key_event(raw: bytes) -> KeyEvent:
    """Verify and read one event of a log.

    Raises:
        MalformedError: Not a signed key event.
        RejectedError: Its signature is not good, or its fields are not those of its change.
    """
    document = SignedDocument.decode(raw, Purpose.KEY_EVENT, max_payload_bytes=MAX_KEY_EVENT_BYTES)
    stated = decode_canonical(document.payload, _KeyEvent, what="key event", max_bytes=MAX_KEY_EVENT_BYTES)
    change = KeyChange(stated.change)
    needed, possible = _FIELDS[change]
    found = {name for name in _OPTIONAL if getattr(stated, name) is not None}
    if not needed <= found <= needed | possible:
        raise RejectedError(f"KEY-1 fields-of-a-{change}", expected=sorted(needed), found=sorted(found))
    keeps = None if stated.keeps is None else parse_exact(Multihash, stated.keeps, "kept block")
    if keeps is not None and keeps.code != SHA3_256:
        raise RejectedError("KEY-1 kept-block-is-sha3-256", expected=hex(SHA3_256), found=hex(keeps.code))
    return KeyEvent(
        change=change,
        dataset_id=parse_exact(DatasetId, stated.dataset, "key event dataset"),
        index=stated.index,
        previous=None if stated.previous is None else parse_exact(Multihash, stated.previous, "key event hash"),
        new_key=_find_key(stated.new_key, "new key"),
        first_sequence_number=stated.first_sequence_number,
        recovery_key=_find_key(stated.recovery_key, "recovery key"),
        stolen_from=stated.stolen_from,
        keeps=keeps,
        time=parse_exact(Timestamp, stated.time, "key event time"),
        signer=document.signer,
        hash=Multihash.of_sha3_256(document.payload),
        raw=bytes(raw),
    )


def _find_key(text: str | None, what: str) -> DidKey | None:
    return None if text is None else parse_exact(DidKey, text, what)
