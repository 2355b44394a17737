"""Signing changes of key: each function makes the next event of a log, and refuses to make one that nobody would take.

Source: clauses KEY-4 to KEY-10 in ``spec/extensions/keys.md``.
"""

from odf_protocol.did import DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.key_events import KeyChange, sign_event
from odf_protocol.key_history import KeyHistory
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
    return _taken(
        history,
        sign_event(
            private_key,
            KeyChange.ROTATION,
            history.dataset_id,
            index=len(history.events),
            previous=history.last_event,
            new_key=new_key,
            first_sequence_number=first_sequence_number,
            time=time,
        ),
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
    return _taken(
        history,
        sign_event(
            private_key,
            KeyChange.RECOVERY_KEY,
            history.dataset_id,
            index=len(history.events),
            previous=history.last_event,
            recovery_key=recovery_key,
            time=time,
        ),
    )


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
    return _taken(
        history,
        sign_event(
            private_key,
            KeyChange.RECOVERY,
            history.dataset_id,
            index=len(history.events),
            previous=history.last_event,
            new_key=new_key,
            first_sequence_number=first_sequence_number,
            stolen_from=stolen_from,
            keeps=keeps,
            recovery_key=recovery_key,
            time=time,
        ),
    )


def _taken(history: KeyHistory, raw: bytes) -> bytes:
    try:
        history.extend(raw)
    except RejectedError as error:
        raise ValueError(str(error)) from error
    return raw
