"""What this node has, a line a dataset."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from odf_node.acceptance.unchecked import find_unchecked
from odf_node.datasets.presence import Presence
from odf_node.derive.holding import InputHold, find_holds
from odf_node.derive.waiting import find_waited_for
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.records.datasets import DatasetRecord
from odf_node.records.evidence import DocumentKind
from odf_protocol.coverage import decode_progress
from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class ListedDataset:
    """One dataset.

    Attributes:
        record: Which.
        rows: How many it has.
        watermark: Up to where its event times are complete; None: nobody said.
        ground: What its data rest on, in words; ``FROZEN`` where a dispute is open.
        absent_files: How many of its files are not here by choice.
        not_checked: What was taken without a look at it.
        holds: What of its inputs is held back from an own derivative (PLAN-21).
        waits_for: Inputs of a derivative without rows that state no watermark, which its query needs (PLAN-20).
    """

    record: DatasetRecord
    rows: int
    watermark: Timestamp | None
    ground: str
    absent_files: int
    not_checked: tuple[str, ...]
    waits_for: tuple[str, ...] = ()
    holds: tuple[InputHold, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """The use case behind ``odf-node list``."""

    home: Home

    def summarize(self, records: Iterable[DatasetRecord]) -> Iterator[ListedDataset]:
        """Sum up datasets without reading their chains; what few of them have is asked once for all."""
        incomplete = self.home.store.list_incomplete_datasets()
        disputed = self.home.store.list_subjects(DocumentKind.EQUIVOCATION)
        presence = Presence(self.home.store, self.home.objects)
        listed = tuple(records)
        states = self.home.store.get_chain_states(record.id for record in listed)
        for record in listed:
            if record.id not in states:
                continue  # deleted meanwhile
            progress = decode_progress(states[record.id])
            unchecked = find_unchecked(self.home.store, record)
            is_frozen = record.id in disputed and self._is_frozen(record.id)
            waited_for = () if progress.row_count else find_waited_for(self.home.store, record)
            yield ListedDataset(
                record,
                progress.row_count,
                progress.watermark,
                "FROZEN" if is_frozen else record.trust.in_words(progress.partial),
                len(presence.find_absent(record)) if record.id in incomplete else 0,
                unchecked.what if unchecked else (),
                tuple(each.name for each in waited_for),
                tuple(find_holds(self.home, record).values()),
            )

    def _is_frozen(self, dataset_id: DatasetId) -> bool:
        return Disputes(self.home.store).find_obstacle(dataset_id) is not None
