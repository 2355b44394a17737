"""Signed documents about datasets: who vouches for which head, which keys speak, what is disputed."""

from collections.abc import Iterator
from typing import Protocol

from odf_node.ports.datasets import SignedHead
from odf_node.ports.evidence import DocumentKind, EvidenceDocument, KeyLogChange, SeenHead
from odf_protocol.did import DatasetId


class DocumentStore(Protocol):
    """Signed heads of datasets that are here; of any: key events, proofs, settlements, and the newest head met."""

    def find_signed_head(self, dataset_id: DatasetId) -> SignedHead | None:
        """Return the document that vouches for the present head, or None when there is none."""
        ...

    def iter_signed_heads(self, dataset_id: DatasetId) -> Iterator[SignedHead]:
        """Yield every signed head ever committed or added for the dataset, by sequence number."""
        ...

    def put_signed_head(self, signed_head: SignedHead) -> None:
        """Keep a document about a block of the chain; a different document for the same block stays beside it.

        Raises:
            BlockNotFoundError: The chain has no such block.
        """
        ...

    def list_head_documents(self) -> dict[DatasetId, int]:
        """Return for each dataset with a signed head a number that changes when another document counts."""
        ...

    def put_seen_head(self, head: SeenHead) -> bool:
        """Remember a head if it is newer than the one remembered; say whether it was."""
        ...

    def find_seen_head(self, dataset_id: DatasetId) -> SeenHead | None:
        """Return the newest head that was ever met for a dataset, or None."""
        ...

    def put_document(self, document: EvidenceDocument) -> bool:
        """Keep a document that proves itself; say whether it is new. It stays when the dataset is deleted."""
        ...

    def iter_documents(self, dataset_id: DatasetId, kind: DocumentKind) -> Iterator[EvidenceDocument]:
        """Yield documents of a kind about a dataset, in order of arrival."""
        ...

    def list_subjects(self, kind: DocumentKind) -> frozenset[DatasetId]:
        """Return the datasets for which ``iter_documents`` yields something."""
        ...

    def add_key_events(self, change: KeyLogChange) -> None:
        """Add key events to those of a dataset, in one step with what goes with them; like documents they stay.

        Raises:
            KeyLogMovedError: Other events were added since ``change.known`` were read; nothing was written.
            HeadMovedError: The chain's head is not ``change.expected_head``; nothing was written.
        """
        ...
