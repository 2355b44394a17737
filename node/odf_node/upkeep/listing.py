"""What this node has, a line a dataset."""

from dataclasses import dataclass

from odf_node.acceptance.unchecked import find_unchecked
from odf_node.datasets.presence import Presence
from odf_node.ports.chains import ChainStore
from odf_node.ports.commits import CommitStore
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.documents import DocumentStore
from odf_node.ports.evidence import DocumentKind
from odf_node.ports.object_names import ObjectNames
from odf_node.ports.objects import ObjectStore
from odf_protocol.chain_progress import decode_progress
from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """One dataset.

    Attributes:
        record: Which.
        rows: How many it has.
        watermark: Up to where its event times are complete; None: nobody said.
        ground: What its data rest on, in words; ``FROZEN`` where a dispute is open.
        absent_files: How many of its files are not here by choice.
        not_checked: What was taken without a look at it.
    """

    record: DatasetRecord
    rows: int
    watermark: Timestamp | None
    ground: str
    absent_files: int
    not_checked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """The use case behind ``odf-node list``."""

    chains: ChainStore
    commits: CommitStore
    documents: DocumentStore
    object_names: ObjectNames
    objects: ObjectStore

    def summarize(self, record: DatasetRecord) -> DatasetSummary:
        """Sum up one dataset without reading its chain."""
        _head, state = self.chains.get_chain_state(record.id)
        progress = decode_progress(state)
        unchecked = find_unchecked(self.commits, record)
        return DatasetSummary(
            record,
            progress.row_count,
            progress.watermark,
            "FROZEN" if self._is_frozen(record.id) else record.trust.in_words(progress.partial),
            len(Presence(self.object_names, self.objects).find_absent(record)),
            unchecked.what if unchecked else (),
        )

    def _is_frozen(self, dataset_id: DatasetId) -> bool:
        if next(iter(self.documents.iter_documents(dataset_id, DocumentKind.EQUIVOCATION)), None) is None:
            return False  # as almost always: what reads proofs is not even loaded
        from odf_node.keys.disputes import Disputes

        return Disputes(self.chains, self.documents).find_obstacle(dataset_id) is not None
