"""Evidence put together for somebody who believes nobody: documents only, no opinions of this node."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.acceptance.refusals import KEY_LOG_FILE, Rejections
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.records.datasets import DatasetRecord
from odf_node.records.evidence import DocumentKind
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import block_statement
from odf_protocol.errors import OdfError
from odf_protocol.events import Seed
from odf_protocol.exchange.messages import KeyLogMessage, decode_message
from odf_protocol.heads import decode_signed_head
from odf_protocol.judging import BundleDocument, DocumentSort
from odf_protocol.key_history import KeyHistory

MAX_BLOCKS: Final = 500
"""Block signatures that are taken out of one rejection.  # guess: half of what a bundle may have"""

_SORTS = {
    DocumentKind.EQUIVOCATION: DocumentSort.EQUIVOCATION,
    DocumentKind.SETTLEMENT: DocumentSort.SETTLEMENT,
    DocumentKind.KEY_EVENT: DocumentSort.KEY_EVENT,
}


@dataclass(frozen=True, slots=True)
class Bundles:
    """Gathers what is kept, from one store."""

    store: MetadataStore

    def about_dataset(self, record: DatasetRecord) -> list[BundleDocument]:
        """Gather proofs, decisions of the owner, signed heads, statements, and the signatures of disputed blocks."""
        found = [
            BundleDocument(sort, item.raw)
            for kind, sort in _SORTS.items()
            for item in self.store.iter_documents(record.id, kind)
        ]
        found += [BundleDocument(DocumentSort.SIGNED_HEAD, h.raw) for h in self.store.iter_signed_heads(record.id)]
        seen = self.store.find_seen_head(record.id)
        if seen is not None:
            found.append(BundleDocument(DocumentSort.SIGNED_HEAD, seen.raw))
        found += [BundleDocument(DocumentSort.STATEMENT, item.raw) for item in self.store.iter_attestations(record.id)]
        for dispute in Disputes(self.store).list_disputes(record.id):
            stored = self.store.find_block_by_number(record.id, dispute.proof.position)
            if stored is not None and stored.signature is not None:
                keys = KeyLogs(self.store).get_history(record.id)
                found.append(_block_statement(keys, stored.raw, stored.signature))
        return found

    def about_rejection(self, folder: Path) -> list[BundleDocument]:
        """Gather what was signed of what was offered and rejected, and what this node stated about it."""
        found = []
        for name, sort in (
            ("equivocation.json", DocumentSort.EQUIVOCATION),
            ("signed-head", DocumentSort.SIGNED_HEAD),
            ("attestation.json", DocumentSort.STATEMENT),
        ):
            if (folder / name).is_file():
                found.append(BundleDocument(sort, (folder / name).read_bytes()))
        if (folder / KEY_LOG_FILE).is_file():
            shown = decode_message((folder / KEY_LOG_FILE).read_bytes(), KeyLogMessage)
            found += [BundleDocument(DocumentSort.KEY_EVENT, raw) for raw in shown.events]
        return [*found, *self._proposed_statements(folder, _dataset_of(folder / "signed-head"))]

    def _proposed_statements(self, folder: Path, dataset_id: DatasetId | None) -> Iterator[BundleDocument]:
        # The newest ones: what is rejected stands at the end.
        proposed = Rejections(folder.parent).iter_proposed(folder)
        newest = deque(((each.raw, each.signature) for each in proposed), MAX_BLOCKS)
        for raw, signature in newest:
            try:
                event = decode_block(raw, expected_hash=None).event
            except OdfError:
                continue
            dataset_id = event.dataset_id if isinstance(event, Seed) else dataset_id
            if dataset_id is not None and signature is not None:
                try:
                    yield _block_statement(KeyLogs(self.store).get_history(dataset_id), raw, signature)
                except ValueError:
                    continue


def _dataset_of(signed_head: Path) -> DatasetId | None:
    try:
        return decode_signed_head(signed_head.read_bytes()).dataset_id
    except (OSError, OdfError):
        return None


def _block_statement(keys: KeyHistory, raw: bytes, signature: bytes) -> BundleDocument:
    block = decode_block(raw, expected_hash=None)
    signer = keys.find_signer(signature, block.sequence_number, block.hash) or keys.key_at(block.sequence_number)
    statement = block_statement(keys.dataset_id, block.sequence_number, block.hash, signer, signature)
    return BundleDocument(DocumentSort.BLOCK_STATEMENT, statement)
