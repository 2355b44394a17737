"""Changing the keys of own datasets: rotation, a recovery key that waits offline, recovery from a stolen key.

The private half of a new key is durable before the event that names it; the event and the head that the new key signs
become true in one transaction, which fails if the chain or the log grew meanwhile. A crash before it leaves a key that
nothing names, after it a finished change. What runs beside it and read the old key cannot commit (KEY-17).

Source: clauses KEY-4 to KEY-17 in ``spec/extensions/keys.md``.
"""

from dataclasses import dataclass, replace

from odf_node.errors import UsageError
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import require_newest, require_newest_signed_here
from odf_node.keys.logs import KeyLogs, KnownKeys
from odf_node.ports import DatasetRecord, Head, KeyStore, Origin, PrivateKey
from odf_node.ports.chains import ChainStore
from odf_node.ports.evidence import DocumentStore
from odf_protocol.did import DidKey
from odf_protocol.heads import sign_head
from odf_protocol.key_events import KeyEvent, decode_key_event
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_recovery, sign_recovery_key, sign_rotation
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class KeyChanging:
    """The use case behind ``odf-node key``, for datasets whose keys are here."""

    chains: ChainStore
    documents: DocumentStore
    keys: KeyStore

    def rotate(self, record: DatasetRecord, *, now: Timestamp) -> KeyEvent:
        """Make a new key speak for the dataset from its next block on.

        Raises:
            UsageError: The dataset is not this node's own.
            FrozenDatasetError, RestoredBackupError, SigningKeyLostError: As for writing a block.
            HeadMovedError, KeyLogMovedError: Somebody wrote first; nothing was changed.
        """
        record, old, known = self._open(record)
        Disputes(self.chains, self.documents).require_undisputed(record.id, record.name)
        require_newest(self.chains, self.documents, self.keys, record.id, record.head)
        new = self.keys.generate()
        raw = sign_rotation(
            old.seed,
            known.history,
            new_key=self.keys.put_signing_key(new),
            first_sequence_number=record.head.sequence_number + 1,
            time=now,
        )
        return self._commit(record, known, known.history, raw, now, new)

    def prepare(
        self, record: DatasetRecord, recovery_key: DidKey, *, signed_with: PrivateKey | None, now: Timestamp
    ) -> KeyEvent:
        """Name the key that may take the dataset back; where there is one already, it has to sign (``signed_with``).

        Raises:
            UsageError: The dataset is not this node's own, or ``signed_with`` is missing or another key.
            FrozenDatasetError, RestoredBackupError, SigningKeyLostError: As for writing a block.
            HeadMovedError, KeyLogMovedError: Somebody wrote first; nothing was changed.
        """
        record, current, known = self._open(record)
        Disputes(self.chains, self.documents).require_undisputed(record.id, record.name)
        require_newest(self.chains, self.documents, self.keys, record.id, record.head)
        signer = current
        if known.history.recovery_key is not None:
            signer = _require_recovery_key(record, known.history, signed_with)
        raw = sign_recovery_key(signer.seed, known.history, recovery_key=recovery_key, time=now)
        return self._commit(record, known, known.history, raw, now, None)

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

        Rotations to keys that are not in this home are the thief's; the recovery outranks them.

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
        known = KeyLogs(self.chains, self.documents).read(record.id)
        history = self._without_foreign_rotations(known.history)
        signer = _require_recovery_key(record, history, recovery_key)
        if not 0 <= stolen_from <= record.head.sequence_number + 1:
            raise UsageError(f"'{record.name}' has blocks 0 to {record.head.sequence_number}; name one of them")
        require_newest_signed_here(self.chains, self.documents, self.keys, record.id, record.head)
        new = self.keys.generate()
        try:
            raw = sign_recovery(
                signer.seed,
                history,
                new_key=self.keys.put_signing_key(new),
                first_sequence_number=record.head.sequence_number + 1,
                stolen_from=stolen_from,
                keeps=record.head.hash,
                recovery_key=next_recovery_key,
                time=now,
            )
        except ValueError as error:
            raise UsageError(str(error)) from error
        return self._commit(record, known, history, raw, now, new)

    def _open(self, record: DatasetRecord) -> tuple[DatasetRecord, PrivateKey, KnownKeys]:
        record = self._read_again(record)
        return (record, *KeyLogs(self.chains, self.documents).get_signing_key(record.id, self.keys))

    def _read_again(self, record: DatasetRecord) -> DatasetRecord:
        """Return the record as it is now: a running node may have written since it was read."""
        found = self.chains.find_dataset(record.id)
        if found is None or found.origin is not Origin.OWN:
            raise UsageError(f"'{record.name}' is not this node's own: only its owner changes its keys")
        return found

    def _without_foreign_rotations(self, history: KeyHistory) -> KeyHistory:
        for event in history.events:
            if event.new_key is not None and self.keys.find_signing_key(event.new_key) is None:
                return history.up_to(event.index)
        return history

    def _commit(
        self,
        record: DatasetRecord,
        known: KnownKeys,
        before: KeyHistory,
        raw: bytes,
        now: Timestamp,
        new: PrivateKey | None,
    ) -> KeyEvent:
        change = KeyLogs(self.chains, self.documents).change_of(before.extend(raw), (raw,), known.kept, now)
        self.documents.add_key_events(
            replace(
                change,
                expected_head=record.head.hash,
                signed_head=None if new is None else _vouch(new, record, record.head, now),
            )
        )
        event = decode_key_event(raw)
        self.keys.note_key_event(record.id, event.index, event.hash)
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
