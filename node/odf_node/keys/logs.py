"""The key log of each dataset as this node knows it: what is in force, what somebody shows, what was outranked.

A log that is kept never becomes shorter: a peer that shows less of it changes nothing here, and is doubted.

Source: clauses KEY-7 to KEY-17 in ``spec/extensions/keys.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_node.ports.keys import KeyStore, PrivateKey
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import KeyLogMovedError, SigningKeyLostError
from odf_node.records.evidence import DocumentKind, EvidenceDocument, KeyLogChange
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import EquivocationKind, check_equivocation
from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.heads import verify_head
from odf_protocol.key_events import KeyChange, KeyEvent, decode_key_event
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import KeyLogComparison, compare_key_log, excuses, fold_kept_events
from odf_protocol.timestamp import Timestamp

MAX_KEPT_EVENTS: Final = 2000
"""Events kept about one dataset: a whole log, and what recoveries outranked.  # guess"""
MAX_PROOFS: Final = 16
"""Source: EQUIV-10."""
_ATTEMPTS: Final = 5  # guess: several learners of one log at once are rare


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The keys of a dataset, and how many events say so: what a commit must still find when it is made."""

    history: KeyHistory
    kept: int


@dataclass(frozen=True, slots=True)
class ProposedKeys:
    """The keys of a dataset with those that came with an offer: ``new`` events, ``kept`` ones at the time."""

    history: KeyHistory
    new: tuple[bytes, ...]
    kept: int


@dataclass(frozen=True, slots=True)
class KeyLogs:
    """Key logs over one store."""

    store: MetadataStore

    def read(self, dataset_id: DatasetId) -> KnownKeys:
        """Return who speaks for a dataset as far as is known here; every event is checked again."""
        raws = self._raws(dataset_id)
        return KnownKeys(fold_kept_events(dataset_id, raws) if raws else KeyHistory.start(dataset_id), len(raws))

    def get_history(self, dataset_id: DatasetId) -> KeyHistory:
        """Return who has spoken for a dataset, as far as is known here."""
        return self.read(dataset_id).history

    def documents_about(self, dataset_id: DatasetId) -> tuple[bytes, ...]:
        """Return the log in force, as its events were made, to be passed on."""
        return tuple(event.raw for event in self.get_history(dataset_id).events)

    def list_outranked(self, dataset_id: DatasetId) -> list[KeyEvent]:
        """List events that were taken once and that a recovery made void."""
        in_force = {event.hash for event in self.get_history(dataset_id).events}
        return [event for raw in self._raws(dataset_id) if (event := decode_key_event(raw)).hash not in in_force]

    def compare(self, dataset_id: DatasetId, raws: Sequence[bytes]) -> ProposedKeys:
        """Say who speaks for a dataset if what somebody shows is taken; nothing is changed.

        Raises:
            MalformedError, RejectedError: What is shown breaks a rule of the log, or contradicts what is kept.
        """
        known = self.read(dataset_id)
        found = compare_key_log(known.history, raws)
        if found.proofs and not all(excuses(found.history, proof) for proof in found.proofs):
            raise RejectedError("KEY-7 one-log", expected="one log", found=found.proofs[0].explain())
        return ProposedKeys(found.history, found.new, known.kept)

    def learn(self, dataset_id: DatasetId, raws: Sequence[bytes], *, now: Timestamp) -> KeyLogComparison:
        """Keep what is new in a log that somebody shows; a contradiction freezes the dataset (KEY-7).

        Raises:
            MalformedError, RejectedError: What is shown breaks a rule of the log; nothing was changed.
            KeyLogMovedError: Others go on changing the log.
        """
        for _ in range(_ATTEMPTS):
            known = self.read(dataset_id)
            found = compare_key_log(known.history, raws)
            self._keep_proofs(dataset_id, found, now)
            self._require_ahead(known.history, found.new)
            if not found.new or known.kept + len(found.new) > MAX_KEPT_EVENTS:
                return found
            try:
                self.store.add_key_events(self.change_of(found.history, found.new, known.kept, now))
            except KeyLogMovedError as error:
                moved = error
                continue
            return found
        raise moved

    def change_of(self, history: KeyHistory, new: tuple[bytes, ...], known: int, now: Timestamp) -> KeyLogChange:
        """Put together what becomes true with new events: the pin follows, a void head is forgotten (KEY-16)."""
        seen = self.store.find_seen_head(history.dataset_id)
        return KeyLogChange(
            dataset_id=history.dataset_id,
            raws=new,
            known=known,
            received_at=now,
            pinned_key=history.current_key,
            forgets_seen_head=seen is not None and not _counts(seen.raw, history),
        )

    def get_signing_key(self, dataset_id: DatasetId, keys: KeyStore) -> tuple[PrivateKey, KnownKeys]:
        """Return the private key that speaks for an own dataset now.

        Raises:
            KeyNotFoundError: The dataset is somebody else's.
            SigningKeyLostError: Its key was changed, and the new one is not in this home.
        """
        known = self.read(dataset_id)
        if not known.history.events:
            return keys.get_dataset_key(dataset_id), known
        key = keys.find_signing_key(known.history.current_key)
        if key is None:
            raise SigningKeyLostError(dataset_id, known.history.current_key)
        return key, known

    def require_kept(self, record: DatasetRecord) -> None:
        """Stop whoever would continue a history that its owner gave up (KEY-14).

        Raises:
            RejectedError: The chain held here is one.
        """
        number = self.find_disowned(record)
        if number is not None:
            raise RejectedError(
                "KEY-14 history-held-here-is-the-kept-one",
                sequence_number=number,
                expected="the history that its owner keeps ('odf-node pull --force' takes it)",
                found="blocks that a stolen key signed, which the owner gave up",
            )

    def find_disowned(self, record: DatasetRecord) -> int | None:
        """Return from which block on, at the latest, the chain held here is one that its owner gave up (KEY-12).

        None where all is well.
        """
        history = self.get_history(record.id)
        for each in history.recoveries:
            last = self.store.find_block_by_number(record.id, each.first_sequence_number - 1)
            if last is not None and last.hash != each.keeps:
                return last.sequence_number
            after = self.store.find_block_by_number(record.id, each.first_sequence_number)
            if after is not None and after.signature is not None:
                try:
                    history.require_block(after.signature, after.sequence_number, after.hash)
                except OdfError:
                    return after.sequence_number
        return None

    def _require_ahead(self, before: KeyHistory, new: Sequence[bytes]) -> None:
        """Stop a change of key that reaches back over blocks which are held, signed by the key before it (KEY-23)."""
        events = [decode_key_event(raw) for raw in new]
        if any(event.change is KeyChange.RECOVERY for event in events):
            return  # says itself what becomes of such blocks (KEY-12)
        record = self.store.find_dataset(before.dataset_id) if events else None
        for event in events:
            number = event.first_sequence_number
            if record is None or number is None or number > record.head.sequence_number:
                continue
            held = self.store.find_block_by_number(record.id, number)
            if held is None or held.signature is None:
                continue
            signer = before.find_signer(held.signature, number, held.hash)
            if signer is not None and signer != event.new_key:
                raise RejectedError(
                    "KEY-23 change-is-ahead-of-what-is-signed",
                    sequence_number=number,
                    expected=f"a change of key behind block {record.head.sequence_number}, which is held here",
                    found=f"event {event.index}, by which {signer} did not speak for the block that it signed",
                )

    def _keep_proofs(self, dataset_id: DatasetId, found: KeyLogComparison, now: Timestamp) -> None:
        if not found.proofs:
            return
        kept = [each.raw for each in self.store.iter_documents(dataset_id, DocumentKind.EQUIVOCATION)]
        for proof in found.proofs:
            if proof.raw in kept or (len(kept) >= MAX_PROOFS and _has_open_log(kept, found.history)):
                continue
            self.store.put_document(EvidenceDocument(DocumentKind.EQUIVOCATION, dataset_id, proof.raw, now))
            kept.append(proof.raw)

    def _raws(self, dataset_id: DatasetId) -> list[bytes]:
        return [item.raw for item in self.store.iter_documents(dataset_id, DocumentKind.KEY_EVENT)]


def _has_open_log(proofs: Sequence[bytes], history: KeyHistory) -> bool:
    """Say whether a contradiction in the key log is among proofs that no recovery has ended: nothing settles it."""
    checked = map(check_equivocation, proofs)
    return any(proof.kind is EquivocationKind.KEY_EVENTS and not excuses(history, proof) for proof in checked)


def _counts(signed_head: bytes, history: KeyHistory) -> bool:
    try:
        verify_head(signed_head, history.dataset_id, keys=history)
    except OdfError:
        return False
    return True
