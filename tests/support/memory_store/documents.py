"""Signed documents about datasets, in order of arrival."""

from collections.abc import Iterator
from dataclasses import replace

from odf_node.ports.datasets import SignedHead
from odf_node.ports.errors import HeadMovedError
from odf_node.ports.evidence import DocumentKind, EvidenceDocument, KeyLogChange, SeenHead
from odf_protocol.did import DatasetId
from support.memory_store.commits import require_key_events
from support.memory_store.tables import MemoryPort, require_block


class MemoryDocuments(MemoryPort):
    """``DocumentStore`` in memory."""

    def find_signed_head(self, dataset_id: DatasetId) -> SignedHead | None:
        with self._tables.lock:
            kept = self._tables.datasets.get(dataset_id)
            heads = [] if kept is None else [each for _, each in kept.signed_heads if each.head == kept.record.head]
            return heads[-1] if heads else None

    def iter_signed_heads(self, dataset_id: DatasetId) -> Iterator[SignedHead]:
        with self._tables.lock:
            heads = [each for _, each in self._tables.get(dataset_id).signed_heads]
        return iter(sorted(heads, key=lambda each: each.head.sequence_number))

    def put_signed_head(self, signed_head: SignedHead, *, known_key_events: int | None = None) -> None:
        with self._tables.lock:
            if known_key_events is not None:
                require_key_events(self._tables, signed_head.dataset_id, known_key_events)
            kept = self._tables.get(signed_head.dataset_id)
            require_block(kept, signed_head.head.sequence_number, signed_head.head.hash)
            if signed_head not in [each for _, each in kept.signed_heads]:
                kept.signed_heads.append((self._tables.next_arrival(), signed_head))

    def list_head_documents(self) -> dict[DatasetId, int]:
        with self._tables.lock:
            return {
                dataset_id: max(places)
                for dataset_id, kept in self._tables.datasets.items()
                if (places := [place for place, each in kept.signed_heads if each.head == kept.record.head])
            }

    def put_seen_head(self, head: SeenHead) -> bool:
        with self._tables.lock:
            known = self._tables.seen_heads.get(head.dataset_id)
            if known is not None and head.sequence_number <= known.sequence_number:
                return False
            self._tables.seen_heads[head.dataset_id] = head
            return True

    def find_seen_head(self, dataset_id: DatasetId) -> SeenHead | None:
        return self._tables.seen_heads.get(dataset_id)

    def put_document(self, document: EvidenceDocument) -> bool:
        with self._tables.lock:
            return self._tables.keep_document(document)

    def iter_documents(self, dataset_id: DatasetId, kind: DocumentKind) -> Iterator[EvidenceDocument]:
        with self._tables.lock:
            documents = self._tables.documents.values()
            return iter([each for each in documents if each.dataset_id == dataset_id and each.kind is kind])

    def list_subjects(self, kind: DocumentKind) -> frozenset[DatasetId]:
        with self._tables.lock:
            return frozenset(each.dataset_id for each in self._tables.documents.values() if each.kind is kind)

    def add_key_events(self, change: KeyLogChange) -> None:
        with self._tables.lock:
            if change.expected_head is not None:
                found = self._tables.get(change.dataset_id).record.head.hash
                if found != change.expected_head:
                    raise HeadMovedError(change.dataset_id, change.expected_head, found)
            require_key_events(self._tables, change.dataset_id, change.known)
            for raw in change.raws:
                event = EvidenceDocument(DocumentKind.KEY_EVENT, change.dataset_id, raw, change.received_at)
                self._tables.keep_document(event)
            if change.forgets_seen_head:
                self._tables.seen_heads.pop(change.dataset_id, None)
            kept = self._tables.datasets.get(change.dataset_id)
            if kept is None:
                return
            if change.pinned_key is not None and kept.record.pinned_key is not None:
                kept.record = replace(kept.record, pinned_key=change.pinned_key)
            if change.signed_head is not None:
                signed = SignedHead(change.dataset_id, kept.record.head, change.signed_head)
                kept.signed_heads.append((self._tables.next_arrival(), signed))
