"""Changing the keys of own datasets: rotation, a recovery key that waits offline, recovery from a stolen key.

The private half of a new key is durable before the event that names it; the event and the head that the new key signs
become true in one transaction, which fails if the chain or the log grew meanwhile. A crash before it leaves a key that
nothing names, after it a finished change. What runs beside it and read the old key cannot commit (KEY-17).

Source: clauses KEY-4 to KEY-17 in ``spec/extensions/keys.md``.
"""

from dataclasses import dataclass, replace

from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import require_newest, require_newest_signed_here
from odf_node.keys.logs import KeyLogs, KnownKeys
from odf_node.ports.keys import PrivateKey
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.did import DidKey
from odf_protocol.errors import OdfError
from odf_protocol.head import Head
from odf_protocol.heads import sign_head
from odf_protocol.key_events import KeyEvent, decode_key_event
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_recovery, sign_recovery_key, sign_rotation
from odf_protocol.signatures import verify_block_signature
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class KeyChanging:
    """The use case behind ``odf-node key``, for datasets whose keys are here."""

    home: Home

    def rotate(self, record: DatasetRecord, *, now: Timestamp) -> KeyEvent:
        """Make a new key speak for the dataset from its next block on.

        Raises:
            UsageError: The dataset is not this node's own.
            FrozenDatasetError, RestoredBackupError, SigningKeyLostError: As for writing a block.
            HeadMovedError, KeyLogMovedError: Somebody wrote first; nothing was changed.
        """
        record, old, known = self._open(record)
        Disputes(self.home.store).require_undisputed(record.id, record.name)
        require_newest(self.home.store, self.home.keys, record.id, record.head)
        new = self.home.keys.generate()
        raw = sign_rotation(
            old.seed,
            known.history,
            new_key=self.home.keys.put_signing_key(new),
            first_sequence_number=record.head.sequence_number + 1,
            time=now,
        )
        return self._commit(record, known, known.history, raw, now, new)

    def prepare(
        self, record: DatasetRecord, recovery_key: DidKey, *, signed_with: PrivateKey | None, now: Timestamp
    ) -> KeyEvent:
        """Name the key that may take the dataset back; where there is one already, it has to sign (``signed_with``).

        A key that is named already stays so: whoever was ended behind the commit asks again.

        Raises:
            UsageError: The dataset is not this node's own, or ``signed_with`` is missing or another key.
            FrozenDatasetError, RestoredBackupError, SigningKeyLostError: As for writing a block.
            HeadMovedError, KeyLogMovedError: Somebody wrote first; nothing was changed.
        """
        record, current, known = self._open(record)
        if known.history.recovery_key == recovery_key:
            return self._stated_already(next(e for e in known.history.events if e.recovery_key == recovery_key))
        signer = self._require_preparable(record, current, known.history, signed_with)
        raw = sign_recovery_key(signer.seed, known.history, recovery_key=recovery_key, time=now)
        return self._commit(record, known, known.history, raw, now, None)

    def require_preparable(self, record: DatasetRecord, *, signed_with: PrivateKey | None) -> None:
        """Check what ``prepare`` checks, before a key is made for it.

        Raises:
            UsageError, FrozenDatasetError, RestoredBackupError, SigningKeyLostError: As ``prepare``.
        """
        record, current, known = self._open(record)
        self._require_preparable(record, current, known.history, signed_with)

    def recover(
        self,
        record: DatasetRecord,
        recovery_key: PrivateKey,
        *,
        stolen_from: int,
        next_recovery_key: DidKey | None,
        now: Timestamp,
    ) -> KeyEvent:
        """Take a dataset back: the history held here goes on with a new key, whatever the stolen one signs elsewhere.

        Rotations to keys that are not in this home, and signed no block held here, are the thief's; the recovery
        outranks them. Where the last event is
        the recovery that is asked for, nothing is left to do.

        Args:
            record: An own dataset.
            recovery_key: Was named before the theft.
            stolen_from: The first block that the stolen key may have been misused for.
            next_recovery_key: To be used the next time; None: the same.
            now: Time of the event.

        Raises:
            UsageError: Not an own dataset, no recovery key was named, or another one, or ``stolen_from`` is not within
                the chain.
            RestoredBackupError: This machine signed more than is in this home.
            HeadMovedError, KeyLogMovedError: Somebody wrote first; nothing was changed.
        """
        record = self._read_again(record)
        known = KeyLogs(self.home.store).read(record.id)
        done = self._find_done(known.history, record, recovery_key, stolen_from, next_recovery_key)
        if done is not None:
            return self._stated_already(done)
        history = self._require_recoverable(record, known.history, recovery_key, stolen_from)
        new = self.home.keys.generate()
        try:
            raw = sign_recovery(
                recovery_key.seed,
                history,
                new_key=self.home.keys.put_signing_key(new),
                first_sequence_number=record.head.sequence_number + 1,
                stolen_from=stolen_from,
                keeps=record.head.hash,
                recovery_key=next_recovery_key,
                time=now,
            )
        except ValueError as error:
            raise UsageError(str(error)) from error
        return self._commit(record, known, history, raw, now, new)

    def require_recoverable(self, record: DatasetRecord, recovery_key: PrivateKey, *, stolen_from: int) -> None:
        """Check what ``recover`` checks, before the next recovery key is made for it.

        Raises:
            UsageError, RestoredBackupError: As ``recover``.
        """
        record = self._read_again(record)
        history = KeyLogs(self.home.store).get_history(record.id)
        self._require_recoverable(record, history, recovery_key, stolen_from)

    def _require_preparable(
        self, record: DatasetRecord, current: PrivateKey, history: KeyHistory, signed_with: PrivateKey | None
    ) -> PrivateKey:
        Disputes(self.home.store).require_undisputed(record.id, record.name)
        require_newest(self.home.store, self.home.keys, record.id, record.head)
        return current if history.recovery_key is None else _require_recovery_key(record, history, signed_with)

    def _require_recoverable(
        self, record: DatasetRecord, known: KeyHistory, recovery_key: PrivateKey, stolen_from: int
    ) -> KeyHistory:
        history = self._without_foreign_rotations(known)
        _require_recovery_key(record, history, recovery_key)
        if not 0 <= stolen_from <= record.head.sequence_number + 1:
            raise UsageError(f"'{record.name}' has blocks 0 to {record.head.sequence_number}; name one of them")
        require_newest_signed_here(self.home.store, self.home.keys, record.id, record.head)
        return history

    def _open(self, record: DatasetRecord) -> tuple[DatasetRecord, PrivateKey, KnownKeys]:
        record = self._read_again(record)
        return (record, *KeyLogs(self.home.store).get_signing_key(record.id, self.home.keys))

    def _read_again(self, record: DatasetRecord) -> DatasetRecord:
        """Return the record as it is now: a running node may have written since it was read."""
        found = self.home.store.find_dataset(record.id)
        if found is None or found.origin is not Origin.OWN:
            raise UsageError(f"'{record.name}' is not this node's own: only its owner changes its keys")
        return found

    def _without_foreign_rotations(self, history: KeyHistory) -> KeyHistory:
        """Return what a recovery follows: no rotation to a key that neither is here nor signed what is held here.

        A key that is lost, and signed blocks of this chain, stays in the log: nobody could verify them without it.
        """
        grounded = -1
        for event in history.events:
            if event.new_key is not None and (self._is_here(event.new_key) or self._signed_here(event)):
                grounded = event.index
        for event in history.events[grounded + 1 :]:
            if event.new_key is not None:
                return history.up_to(event.index)
        return history

    def _is_here(self, key: DidKey) -> bool:
        return self.home.keys.find_signing_key(key) is not None

    def _signed_here(self, event: KeyEvent) -> bool:
        number, key = event.first_sequence_number, event.new_key
        block = None if number is None else self.home.store.find_block_by_number(event.dataset_id, number)
        if block is None or block.signature is None or key is None:
            return False
        signature, number = block.signature, block.sequence_number
        try:
            verify_block_signature(signature, event.dataset_id, number, block.hash, public_key=key.public_key)
        except OdfError:
            return False
        return True

    def _find_done(
        self,
        history: KeyHistory,
        record: DatasetRecord,
        recovery_key: PrivateKey,
        stolen_from: int,
        following: DidKey | None,
    ) -> KeyEvent | None:
        last = history.events[-1] if history.events else None
        if last is None or last.new_key is None or self.home.keys.find_signing_key(last.new_key) is None:
            return None
        asked = (DidKey(recovery_key.public_key()), stolen_from, record.head.hash, following)
        return last if (last.signer, last.stolen_from, last.keeps, last.recovery_key) == asked else None

    def _stated_already(self, event: KeyEvent) -> KeyEvent:
        self.home.keys.note_key_event(event.dataset_id, event.index, event.hash)
        return event

    def _commit(
        self,
        record: DatasetRecord,
        known: KnownKeys,
        before: KeyHistory,
        raw: bytes,
        now: Timestamp,
        new: PrivateKey | None,
    ) -> KeyEvent:
        change = KeyLogs(self.home.store).change_of(before.extend(raw), (raw,), known.kept, now)
        self.home.store.add_key_events(
            replace(
                change,
                expected_head=record.head.hash,
                signed_head=None if new is None else _vouch(new, record, record.head, now),
            )
        )
        event = decode_key_event(raw)
        self.home.keys.note_key_event(record.id, event.index, event.hash)
        return event


def _vouch(key: PrivateKey, record: DatasetRecord, head: Head, now: Timestamp) -> bytes:
    """Let the new key vouch for the head: others hear of a new head, ask, and learn the new key with it."""
    return sign_head(
        key.seed, dataset_id=record.id, sequence_number=head.sequence_number, block_hash=head.hash, time=now
    )


def _require_recovery_key(record: DatasetRecord, history: KeyHistory, key: PrivateKey | None) -> PrivateKey:
    wanted = history.recovery_key
    if wanted is None:
        raise UsageError(
            f"'{record.name}' has no recovery key: it has to be named before a key is stolen ('odf-node key prepare')"
        )
    if key is None:
        raise UsageError(f"'{record.name}' has the recovery key {wanted} already; it has to sign: name its file")
    if DidKey(key.public_key()) != wanted:
        raise UsageError(f"that is not the recovery key of '{record.name}', which is {wanted}")
    return key
