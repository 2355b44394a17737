"""The metadata chain of a dataset as people read it: newest first, with what is known of each block beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from odf_engines.stage_metrics import StageMetrics
from odf_node.datasets.ingest_metrics import describe_ingest
from odf_node.datasets.presence import Presence
from odf_node.derive.query_history import QuerySpan, list_queries
from odf_node.derive.step_log import MetricsBasis, StepLog, basis_of, describe_step
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord, StoredBlock
from odf_node.row_counts import RowCounts
from odf_node.wording import count_of
from odf_protocol.block import Block, decode_block
from odf_protocol.block_notes import find_reason, list_lookups
from odf_protocol.enums import DatasetKind
from odf_protocol.events import AddData, ExecuteTransform, SetTransform
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.step_metrics import StepMetrics


@dataclass(frozen=True, slots=True)
class LoggedBlock:
    """One block.

    Attributes:
        block: What it says.
        is_signed: By the dataset's key.
        query: Of a step, which query made it; of a query, which rows it made; empty for others (PLAN-10).
        lacks_files: Files that it names are not here by choice.
        statistics: Of a step, what it did, as its step record says (REPLAY-13).
        basis: Who says so (REPLAY-15).
        stages: Of an ingest of this node, what took how long; empty where that is not kept (STAGE-4).
        row_counts: Of an ingest of this node, what became of its rows; None where that is not kept.
    """

    block: Block
    is_signed: bool
    query: str
    lacks_files: bool
    statistics: StepMetrics | None = None
    basis: MetricsBasis = MetricsBasis.COUNTED
    stages: tuple[StageMetrics, ...] = ()
    row_counts: RowCounts | None = None

    @property
    def did(self) -> str:
        """What a step did and who says so, or what an ingest did, shortly; empty where nobody says."""
        if self.statistics is not None:
            return describe_step(self.statistics, self.basis)
        return "; ".join(filter(None, (self.became, describe_ingest(self.stages))))

    @property
    def became(self) -> str:
        """What became of the rows of an ingest: "1 row added, 2 quarantined"; empty where that is not kept."""
        if self.row_counts is None:
            return ""
        bad = self.row_counts.quarantined
        return f"{self.row_counts.describe()}, {bad:,} quarantined" if bad else self.row_counts.describe()


@dataclass(frozen=True, slots=True)
class ChainLog:
    """The use case behind ``odf-node log``."""

    home: Home

    def read(self, record: DatasetRecord, *, limit: int | None, newest: int | None = None) -> Iterator[LoggedBlock]:
        """Yield blocks from number ``newest`` down (None: the head), at most ``limit`` of them (None: all)."""
        absent = Presence(self.home.store, self.home.objects).find_absent(record)
        queries = list_queries(self.home.store, record.id) if record.kind is DatasetKind.DERIVATIVE else []
        steps = StepLog(self.home.store)
        for stored in islice(self._iter_down(record, newest), limit):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            lacks_files = any(item.hash in absent for item in iter_wanted(block.event))
            is_step = isinstance(block.event, ExecuteTransform)
            figures = steps.find(record.id, stored.hash) if is_step else None
            query = describe_query(block, queries)
            is_ingest = isinstance(block.event, AddData)
            stages = self.home.store.find_stages(record.id, block.sequence_number) if is_ingest else ()
            kept = self.home.store.find_row_counts(record.id, block.sequence_number) if is_ingest else None
            counts = None if kept is None else RowCounts.of_json(kept)
            is_signed = stored.signature is not None
            yield LoggedBlock(block, is_signed, query, lacks_files, figures, basis_of(record), stages, counts)

    def _iter_down(self, record: DatasetRecord, newest: int | None) -> Iterator[StoredBlock]:
        if newest is None:
            yield from self.home.store.iter_blocks_backwards(record.id)
            return
        for number in range(min(newest, record.head.sequence_number), -1, -1):
            stored = self.home.store.find_block_by_number(record.id, number)
            if stored is not None:
                yield stored


def describe_event(event: object) -> str:
    """Give the kind of an event, how many rows it adds, why it corrects (ING-28) and what was looked up (CONV-8)."""
    new_data = getattr(event, "new_data", None)
    kind, reason = type(event).__name__, find_reason(event)
    rows = "" if new_data is None else f"  +{count_of(new_data.offset_interval.row_count, 'row')}"
    looked_up = "".join(f"  looked up in {each.dataset_id} at {each.head.short}" for each in list_lookups(event))
    return f"{kind}{rows}{'' if reason is None else f'  correction: {reason}'}{looked_up}"


def describe_query(block: Block, queries: Sequence[QuerySpan]) -> str:
    """Say of a step which query made it, of a query which rows it made; empty for other blocks (PLAN-10)."""
    if not isinstance(block.event, SetTransform | ExecuteTransform):
        return ""
    span = next((each for each in reversed(queries) if each.sequence_number <= block.sequence_number), None)
    if span is None:
        return ""
    if isinstance(block.event, ExecuteTransform):
        return f"by the query of block {span.sequence_number}"
    return f"made {span.made or 'no rows'}"
