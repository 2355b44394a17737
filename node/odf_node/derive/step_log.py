"""The figures of steps that are stored: what step records say that each step did (REPLAY-13)."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.step_metrics import StepMetrics
from odf_protocol.step_record_codec import decode_step_record

_MAX_LOOKED_AT: Final = 100
"""Newest blocks among which the newest step is looked for.  # guess: others between steps are few"""

_WORDS: Final = {
    "starting": "starting the engine and reading the query",
    "reading": "bringing new rows to the engine",
    "state": "bringing rows of earlier steps to the engine",
    "computing": "the query",
    "checking": "checking what the engine gave",
}


class MetricsBasis(StrEnum):
    """What the figures of a step rest on; the value is what people read (REPLAY-15)."""

    COUNTED = "counted here"
    COMPARED = "compared here, its time by the publisher's words"
    CLAIMED = "by the publisher's words"


@dataclass(frozen=True, slots=True)
class StoredStep:
    """What the record of a block says that its step did."""

    sequence_number: int
    statistics: StepMetrics
    basis: MetricsBasis = MetricsBasis.COUNTED


def basis_of(record: DatasetRecord) -> MetricsBasis:
    """Say what the figures of a dataset's steps rest on: a foreign record is compared where steps are re-executed."""
    if record.origin is Origin.OWN:
        return MetricsBasis.COUNTED
    return MetricsBasis.COMPARED if record.trust is Trust.REEXECUTED else MetricsBasis.CLAIMED


@dataclass(frozen=True, slots=True)
class StepLog:
    """Reads step records for their figures; those of earlier builds have none."""

    store: MetadataStore

    def find(self, dataset_id: DatasetId, block_hash: Multihash) -> StepMetrics | None:
        """Return the figures of a step, None where nobody says them."""
        found = self.store.find_step_record(dataset_id, block_hash)
        if found is None:
            return None
        try:
            return decode_step_record(found.raw).record.statistics
        except OdfError:
            return None  # 'verify' says what is wrong with it

    def find_newest(self, record: DatasetRecord) -> StoredStep | None:
        """Return the figures of the newest step that has any."""
        for block in islice(self.store.iter_blocks_backwards(record.id), _MAX_LOOKED_AT):
            if (statistics := self.find(record.id, block.hash)) is not None:
                return StoredStep(block.sequence_number, statistics, basis_of(record))
        return None


def describe_step(statistics: StepMetrics, basis: MetricsBasis = MetricsBasis.COUNTED) -> str:
    """Say shortly what a step did: ``read 120, gave +8 -1, 3 late, 1.2 s``; and who says so, where others do."""
    parts = [f"read {statistics.total_read:,}", f"gave {statistics.rows_out}"]
    if statistics.late_rows:
        parts.append(f"{statistics.late_rows:,} late")
    if statistics.milliseconds:
        parts.append(f"{statistics.total_ms / 1000:.1f} s")
    stated = ", ".join(parts)
    return stated if basis is MetricsBasis.COUNTED else f"{stated} ({basis})"


def explain_time(statistics: StepMetrics) -> list[str]:
    """Say what took how much of a step's time, the largest share first; empty where nobody measured."""
    total = statistics.total_ms
    shares = sorted(statistics.milliseconds.items(), key=lambda item: -item[1]) if total else []
    lines = [
        f"{round(100 * spent / total)} %  {_WORDS.get(name, 'other things')}"
        for name, spent in shares
        if 100 * spent >= total
    ]
    if lines and statistics.state_before.rows:
        lines[0] += f"; of {statistics.total_read:,} rows read, earlier steps had read {statistics.state_before.rows:,}"
    return lines
