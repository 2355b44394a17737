"""Logs of key events: the next event of one's own, and what is kept beside what somebody shows.

What signs makes the next event of a log, and rejects to make one that nobody would take. Comparing finds what is new,
older, outranked, or a contradiction:

====================================  ====================================================================
from the first event that differs     what happens
====================================  ====================================================================
nothing is kept                       the events are taken, if they continue the log
nothing is shown                      whoever shows it hides events, or has not heard of them
rotations are kept, a recovery is     the log with the recovery takes their place; they are kept as what they are, the
among those shown                     words of a stolen key
a recovery is among those kept, none  whoever shows it has not heard of the recovery
among those shown
both, or neither, have a recovery     an equivocation if one key signed both events, else nothing that anybody may say
====================================  ====================================================================

Source: clauses KEY-4 to KEY-10 in ``spec/extensions/keys.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.equivocation import EquivocationKind, EquivocationProof, prove_equivocation
from odf_protocol.errors import RejectedError
from odf_protocol.key_events import KeyChange, KeyEvent, decode_key_event, sign_event
from odf_protocol.key_history import MAX_KEY_EVENTS, KeyHistory
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


def sign_rotation(
    private_key: bytes, history: KeyHistory, *, new_key: DidKey, first_sequence_number: int, time: Timestamp
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
    return _sign_next(
        private_key,
        KeyChange.ROTATION,
        history,
        time,
        new_key=new_key,
        first_sequence_number=first_sequence_number,
    )


def sign_recovery_key(private_key: bytes, history: KeyHistory, *, recovery_key: DidKey, time: Timestamp) -> bytes:
    """Name the key that may take the dataset back.

    Args:
        private_key: The key in force; where there is a recovery key already, that one.
        history: All events so far.
        recovery_key: To be kept offline.
        time: Now.

    Raises:
        ValueError: The private key is not the one that may, or the event breaks a rule.
    """
    return _sign_next(private_key, KeyChange.RECOVERY_KEY, history, time, recovery_key=recovery_key)


def sign_recovery(
    private_key: bytes,
    history: KeyHistory,
    *,
    new_key: DidKey,
    first_sequence_number: int,
    stolen_from: int,
    keeps: Multihash,
    time: Timestamp,
    recovery_key: DidKey | None = None,
) -> bytes:
    """Take a dataset back from a stolen key.

    Args:
        private_key: The recovery key.
        history: The events that stand: where whoever stole the key rotated it, those before.
        new_key: Speaks from now on.
        first_sequence_number: Number of the next block to be written.
        stolen_from: The first block that the stolen key may have been misused for.
        keeps: Hash of the last block of the history that goes on.
        time: Now.
        recovery_key: The next recovery key; None: the same as before.

    Raises:
        ValueError: The private key is not the recovery key, or the event breaks a rule.
    """
    return _sign_next(
        private_key,
        KeyChange.RECOVERY,
        history,
        time,
        new_key=new_key,
        first_sequence_number=first_sequence_number,
        stolen_from=stolen_from,
        keeps=keeps,
        recovery_key=recovery_key,
    )


def _sign_next(private_key: bytes, change: KeyChange, history: KeyHistory, time: Timestamp, **stated: Any) -> bytes:
    raw = sign_event(
        private_key,
        change,
        history.dataset_id,
        index=len(history.events),
        previous=history.last_event,
        time=time,
        **stated,
    )
    try:
        history.extend(raw)
    except RejectedError as error:
        raise ValueError(str(error)) from error
    return raw


@dataclass(frozen=True, slots=True)
class KeyLogComparison:
    """What came of comparing.

    Attributes:
        history: In force now.
        new: Events that were taken, as received.
        proofs: Contradictions of one key.
        hidden: How many events of the log in force the other one does not have.
    """

    history: KeyHistory
    new: tuple[bytes, ...] = ()
    proofs: tuple[EquivocationProof, ...] = ()
    hidden: int = 0


def compare_key_log(history: KeyHistory, raws: Sequence[bytes]) -> KeyLogComparison:
    """Compare what is kept with a log, or with a part of one that begins within it or right behind it.

    Args:
        history: The log in force here.
        raws: Events in order, untrusted.

    Raises:
        MalformedError: Something among them is no key event.
        RejectedError: Something among them breaks a rule of the log; nothing of it is to be taken.
    """
    if len(raws) > MAX_KEY_EVENTS:
        raise RejectedError("KEY-8 events-in-a-log", expected=f"at most {MAX_KEY_EVENTS}", found=len(raws))
    shown = [decode_key_event(raw) for raw in raws]
    for event in shown:
        if event.dataset_id != history.dataset_id:
            raise RejectedError("KEY-2 event-of-this-dataset", expected=history.dataset_id, found=event.dataset_id)
    kept = history.events
    for place, event in enumerate(shown):
        if event.index != shown[0].index + place:
            raise RejectedError("KEY-3 events-link", expected=shown[0].index + place, found=event.index)
    fork = 0
    while fork < len(shown) and shown[fork].index < len(kept) and kept[shown[fork].index].hash == shown[fork].hash:
        fork += 1
    rest = shown[fork:]
    if not rest:
        return KeyLogComparison(history, hidden=len(kept) - (shown[-1].index + 1 if shown else 0))
    if rest[0].index >= len(kept):
        return KeyLogComparison(_extended(history, rest), tuple(event.raw for event in rest))
    held = kept[rest[0].index :]
    before = history.up_to(rest[0].index)
    taken = _extended(before, rest)  # also what is not followed has to be a log
    proofs = _find_proof(held[0], rest)
    if _has_recovery(rest) and not _has_recovery(held):
        _require_rotations(held)
        return KeyLogComparison(taken, tuple(event.raw for event in rest), proofs)
    if _has_recovery(held) and not _has_recovery(rest):
        return KeyLogComparison(history, proofs=proofs, hidden=len(held))
    if not proofs:
        found = f"event {rest[0].index} {rest[0].hash}"
        raise RejectedError("KEY-9 recovery-stands", expected=f"event {held[0].index} {held[0].hash}", found=found)
    return KeyLogComparison(history, proofs=proofs)


def fold_kept_events(dataset_id: DatasetId, raws: Sequence[bytes]) -> KeyHistory:
    """Return the log in force of all events that were ever taken, outranked ones among them, in order of arrival.

    Events that follow nothing, or break a rule, are passed over.

    Raises:
        MalformedError, RejectedError: One of ``raws`` is no key event.
    """
    events = [decode_key_event(raw) for raw in raws]
    following: dict[Multihash | None, list[KeyEvent]] = {}
    for event in events:
        following.setdefault(event.previous, []).append(event)
    leads_to_recovery: set[Multihash] = set()
    for event in sorted(events, key=lambda event: -event.index):
        after = following.get(event.hash, [])
        if event.change is KeyChange.RECOVERY or any(each.hash in leads_to_recovery for each in after):
            leads_to_recovery.add(event.hash)
    history = KeyHistory.start(dataset_id)
    while True:
        candidates = sorted(
            following.get(history.last_event, []), key=lambda event: event.hash not in leads_to_recovery
        )
        extended = next(filter(None, (_find_extended(history, event) for event in candidates)), None)
        if extended is None:
            return history
        history = extended


def excuses(history: KeyHistory, proof: EquivocationProof) -> bool:
    """Say whether a proof does not speak against the dataset: the key did not speak there, or was stolen (KEY-13)."""
    in_key_log = proof.kind is EquivocationKind.KEY_EVENTS
    return history.excuses(proof.signer, proof.position, in_key_log=in_key_log)


def _extended(history: KeyHistory, events: Sequence[KeyEvent]) -> KeyHistory:
    for event in events:
        history = history.extend_by(event)
    return history


def _find_extended(history: KeyHistory, event: KeyEvent) -> KeyHistory | None:
    try:
        return history.extend_by(event)
    except RejectedError:
        return None


def _find_proof(held: KeyEvent, rest: Sequence[KeyEvent]) -> tuple[EquivocationProof, ...]:
    if held.signer != rest[0].signer:
        return ()
    return (prove_equivocation(EquivocationKind.KEY_EVENTS, held.raw, rest[0].raw),)


def _has_recovery(events: Sequence[KeyEvent]) -> bool:
    return any(event.change is KeyChange.RECOVERY for event in events)


def _require_rotations(outranked: Sequence[KeyEvent]) -> None:
    for event in outranked:
        if event.change is not KeyChange.ROTATION:
            raise RejectedError(
                "KEY-9 recovery-outranks-rotations-only", expected=KeyChange.ROTATION, found=event.change
            )
