"""Signing heads again, so that who reads them sees whether newer blocks are kept from them.

Source: clauses HEAD-9 to HEAD-11 in ``spec/extensions/heads.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import require_newest
from odf_node.keys.logs import KeyLogs
from odf_node.ports.keys import KeyStore
from odf_node.records.datasets import DatasetRecord, HeldHead, Origin
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.heads import Renewal, sign_head, verify_head
from odf_protocol.heads import SignedHead as HeadDocument
from odf_protocol.timestamp import Timestamp

AFTER_FAILURE_S: Final = 60  # guess: what forbids it is fixed by people


def renew_head(store: MetadataStore, keys: KeyStore, record: DatasetRecord, *, now: Timestamp, valid_s: int) -> None:
    """Sign the head that is held as the newest once more, from now on and for ``valid_s`` seconds.

    Raises:
        KeyNotFoundError: The dataset is somebody else's.
        SigningKeyLostError: The key that speaks for it now is not in this home.
        FrozenDatasetError: Its key signed two histories.
        RestoredBackupError: The chain held here is behind what was published.
        KeyLogMovedError: The key was changed meanwhile; what the old one signed would count for the newest word.
    """
    key, known = KeyLogs(store).get_signing_key(record.id, keys)
    Disputes(store).require_undisputed(record.id, record.name)
    require_newest(store, keys, record.id, record.head)
    raw = sign_head(
        key.seed,
        dataset_id=record.id,
        sequence_number=record.head.sequence_number,
        block_hash=record.head.hash,
        time=now,
        expires=Timestamp(now.seconds + valid_s, now.nanoseconds),
    )
    store.put_signed_head(HeldHead(record.id, record.head, raw), known_key_events=known.kept)


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of a head that was due; ``problem`` None: it was signed."""

    name: str
    problem: str | None


@dataclass(slots=True)
class HeadRenewal:
    """Finds the heads of own published datasets that are due; remembers the others, and what failed.

    Used by one thread at a time.
    """

    home: Home
    _heads: dict[DatasetId, tuple[int, HeadDocument]] = field(default_factory=dict)
    _failed: dict[DatasetId, tuple[int, Timestamp]] = field(default_factory=dict)

    def renew_due(self, rule: Renewal, now: Timestamp) -> list[Renewed]:
        """Sign what is due by ``rule`` at ``now``; a head that must not be signed is tried again after a minute."""
        documents = self.home.store.list_head_documents()
        own = [one for one in self.home.store.list_datasets() if one.published and one.origin is Origin.OWN]
        due = [record for record in own if self._is_due(record, documents.get(record.id), rule, now)]
        return self._renew(due, documents, rule, now) if due else []

    def _is_due(self, record: DatasetRecord, document: int | None, rule: Renewal, now: Timestamp) -> bool:
        if document is None:
            return False
        failed = self._failed.get(record.id)
        if failed is not None and failed[0] == document and 0 <= now.seconds - failed[1].seconds < AFTER_FAILURE_S:
            return False  # a clock that is set back makes nobody wait longer
        known = self._heads.get(record.id)
        if known is None or known[0] != document:
            signed = self.home.store.find_signed_head(record.id)
            if signed is None:
                return False
            try:
                head = verify_head(signed.raw, record.id, keys=KeyLogs(self.home.store).get_history(record.id))
            except OdfError:
                return False  # signed by a key that another one has followed: who writes next signs anew
            known = self._heads[record.id] = (document, head)
        return rule.is_due(known[1], now)

    def _renew(
        self, due: Iterable[DatasetRecord], documents: dict[DatasetId, int], rule: Renewal, now: Timestamp
    ) -> list[Renewed]:
        done = []
        with self.home.objects.writing():
            for record in due:
                problem = None
                try:
                    renew_head(self.home.store, self.home.keys, record, now=now, valid_s=rule.valid_s)
                except OdfError as error:
                    problem = str(error)
                    self._failed[record.id] = (documents[record.id], now)
                done.append(Renewed(record.name, problem))
        return done
