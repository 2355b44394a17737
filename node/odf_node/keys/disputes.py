"""Equivocations: proofs are kept, freeze their dataset everywhere, and are settled by the owner only.

Source: clauses EQUIV-8 to EQUIV-13 in ``spec/extensions/equivocation.md``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from odf_node.errors import FrozenDatasetError, UsageError
from odf_node.keys.logs import MAX_PROOFS, KeyLogs
from odf_node.ports.keys import KeyStore
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import KeyNotFoundError
from odf_node.records.evidence import DocumentKind, EvidenceDocument
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import EquivocationKind, EquivocationProof, check_equivocation
from odf_protocol.errors import OdfError
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import excuses
from odf_protocol.multihash import Multihash
from odf_protocol.settlements import Settlement, decode_settlement, find_kept_history, sign_settlement
from odf_protocol.timestamp import Timestamp

MAX_SETTLEMENTS: Final = 64  # guess: a few for each proof


@dataclass(frozen=True, slots=True)
class Dispute:
    """A proof, and the block by which the owner stands; None while the dataset is frozen."""

    proof: EquivocationProof
    kept: Multihash | None
    received_at: Timestamp
    is_void: bool = False
    """The key did not speak there, or the owner has taken the dataset back from whoever stole it (KEY-13)."""


@dataclass(frozen=True, slots=True)
class Disputes:
    """What is proved against datasets, over one store."""

    store: MetadataStore

    def learn(self, raws: Iterable[bytes], dataset_id: DatasetId, *, now: Timestamp) -> int:
        """Keep the proofs and settlements about a dataset among what somebody passed on; say how many are new.

        Each is checked by itself; what proves nothing, or is about another dataset, is passed over.
        """
        # Settlements first: what is settled makes room for the proof of something else.
        return sum(self._learn_one(raw, dataset_id, now) for raw in sorted(raws, key=_is_proof))

    def list_disputes(self, dataset_id: DatasetId) -> list[Dispute]:
        """List what is proved about a dataset; everything is checked again."""
        settlements = self.list_settlements(dataset_id)
        keys = KeyLogs(self.store).get_history(dataset_id)
        found = []
        for document in self.store.iter_documents(dataset_id, DocumentKind.EQUIVOCATION):
            proof = check_equivocation(document.raw)
            kept = find_kept_history(proof, settlements)
            found.append(Dispute(proof, kept, document.received_at, excuses(keys, proof)))
        return found

    def list_settlements(self, dataset_id: DatasetId) -> list[Settlement]:
        """List the owner's decisions about a dataset."""
        return [decode_settlement(item.raw) for item in self.store.iter_documents(dataset_id, DocumentKind.SETTLEMENT)]

    def documents_about(self, dataset_id: DatasetId) -> tuple[bytes, ...]:
        """Return proofs and settlements as they came, to be passed on."""
        kinds = (DocumentKind.EQUIVOCATION, DocumentKind.SETTLEMENT)
        return tuple(item.raw for kind in kinds for item in self.store.iter_documents(dataset_id, kind))

    def find_obstacle(
        self, dataset_id: DatasetId, hashes: Mapping[int, Multihash] | None = None, *, name: str | None = None
    ) -> str | None:
        """Say why a dataset must not be followed, or None.

        Args:
            dataset_id: Which.
            hashes: Blocks that somebody offers, by number; the blocks held here are looked up.
            name: What whoever reads this calls the dataset; others must not learn what it is called here (EX-85).
        """
        for dispute in self.list_disputes(dataset_id):
            proof = dispute.proof
            if dispute.is_void:
                continue
            if dispute.kept is None:
                shown = f"; 'odf-node evidence show {name}' lays both out" if name is not None else ""
                return f"it is frozen: {_in_short(proof)}{shown}; only its owner can {_remedy(proof)}"
            proposed = (hashes or {}).get(proof.position)
            if proposed is not None and proposed != dispute.kept:
                return f"what is offered is the history that its owner gave up, with block {proof.position} {proposed}"
            here = self._held_at(dataset_id, proof.position)
            if here is not None and here != dispute.kept:
                return (
                    f"its owner stands by the other history, whose block {proof.position} is {dispute.kept}; "
                    "delete this one and pull again"
                )
        return None

    def require_undisputed(
        self, dataset_id: DatasetId, name: str, hashes: Mapping[int, Multihash] | None = None
    ) -> None:
        """Stop whoever is about to take, give or grow a dataset that is frozen.

        Raises:
            FrozenDatasetError: It is.
        """
        obstacle = self.find_obstacle(dataset_id, hashes, name=name)
        if obstacle is not None:
            rule = "EQUIV-9 dataset-is-frozen" if "frozen" in obstacle else "EQUIV-11 history-is-the-settled-one"
            raise FrozenDatasetError(rule, f"'{name}' is not followed: {obstacle}")

    def settle(self, record: DatasetRecord, keys: KeyStore, *, reason: str, now: Timestamp) -> list[Settlement]:
        """Stand by the history that is held here, in every dispute about one's own dataset that is open.

        Raises:
            UsageError: Nothing is open, or the history held here is neither of the two.
            KeyNotFoundError: The dataset is somebody else's.
        """
        KeyLogs(self.store).get_signing_key(record.id, keys)
        disputes = [dispute for dispute in self.list_disputes(record.id) if not dispute.is_void]
        open_ones = [dispute.proof for dispute in disputes if dispute.kept is None]
        if not open_ones:
            raise UsageError(f"'{record.name}' is not frozen: there is nothing to settle")
        settled: list[Settlement] = []
        for proof in open_ones:
            if any(settlement.settles(proof) for settlement in settled):
                continue  # other documents about the same two histories
            if proof.kind is EquivocationKind.KEY_EVENTS:
                raise UsageError(
                    "one key signed two changes of key; only the recovery key can end that: 'odf-node key recover'"
                )
            key = keys.find_signing_key(proof.signer)
            if key is None:
                raise KeyNotFoundError(record.id)
            here = self._held_at(record.id, proof.position)
            if here not in {proof.first, proof.second}:
                raise UsageError(f"the history held here has neither of the two blocks {proof.position} of the proof")
            raw = sign_settlement(key.seed, proof, keeps=here, reason=reason, time=now)
            self.store.put_document(EvidenceDocument(DocumentKind.SETTLEMENT, record.id, raw, now))
            settled.append(decode_settlement(raw))
        return settled

    def _learn_one(self, raw: bytes, dataset_id: DatasetId, now: Timestamp) -> bool:
        kind = DocumentKind.EQUIVOCATION if _is_proof(raw) else DocumentKind.SETTLEMENT
        known = list(self.store.iter_documents(dataset_id, kind))
        if any(item.raw == raw for item in known):
            return False
        try:
            about: EquivocationProof | Settlement
            about = check_equivocation(raw) if kind is DocumentKind.EQUIVOCATION else decode_settlement(raw)
        except OdfError:
            return False
        # EQUIV-8: what some key signed twice concerns a dataset only if the key speaks for it.
        if about.dataset_id != dataset_id or not _concerns(KeyLogs(self.store).get_history(dataset_id), about):
            return False
        if isinstance(about, EquivocationProof) and any(
            about.shows_the_same(check_equivocation(item.raw)) for item in known
        ):
            return False  # other documents, the same two histories
        if isinstance(about, Settlement):
            has_room = len(known) < MAX_SETTLEMENTS
        else:
            has_room = len(known) < MAX_PROOFS or self._freezes_anew(about)
        if not has_room:
            return False
        return self.store.put_document(EvidenceDocument(kind, dataset_id, raw, now))

    def _freezes_anew(self, proof: EquivocationProof) -> bool:
        """Say whether a dataset that is followed would be frozen by a proof (EQUIV-10).

        So who has lied as often as there is room for is not free to lie again; and there is no more to keep than the
        owner settles or takes back.
        """
        is_open = find_kept_history(proof, self.list_settlements(proof.dataset_id)) is None
        known = self.list_disputes(proof.dataset_id)
        return is_open and all(dispute.is_void or dispute.kept is not None for dispute in known)

    def _held_at(self, dataset_id: DatasetId, position: int) -> Multihash | None:
        if self.store.find_dataset(dataset_id) is None:
            return None
        stored = self.store.find_block_by_number(dataset_id, position)
        return None if stored is None else stored.hash


def _is_proof(raw: bytes) -> bool:
    return raw.startswith(b"{")


def _concerns(keys: KeyHistory, about: EquivocationProof | Settlement) -> bool:
    """Say whether what a key signed is of any weight for the dataset: strangers' quarrels are not kept."""
    if isinstance(about, EquivocationProof):
        return not excuses(keys, about)
    return keys.speaks(about.signer, about.position)


def _in_short(proof: EquivocationProof) -> str:
    """Say what was proved, without the long names that ``evidence show`` has."""
    what = "key event" if proof.kind is EquivocationKind.KEY_EVENTS else "block"
    here, there = proof.first.short, proof.second.short
    return f"one of its keys signed two histories, with {what} {proof.position} {here} in one and {there} in the other"


def _remedy(proof: EquivocationProof) -> str:
    if proof.kind is EquivocationKind.KEY_EVENTS:
        return "take the dataset back, by its recovery key"
    return "settle which one goes on"
