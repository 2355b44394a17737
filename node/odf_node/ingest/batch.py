"""One batch that is to be taken in, with what was done to it before, and what is kept of its stages (STAGE-4, 5)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from odf_engines.contract import IngestResponse
from odf_engines.stage_figures import StageClock, StageFigures
from odf_node.ports.commits import FetchedPlace
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.ingests import IngestKey, StageStore
from odf_node.ports.observing import Run
from odf_node.ports.quarantine import QuarantineFile, RowId, Settlement
from odf_protocol.errors import OdfError
from odf_protocol.events import AddPushSource, SetPollingSource, SourceState
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be taken in.

    Attributes:
        path: The file, fetched and prepared.
        shown_as: What people call it.
        event_time: Of rows that have none.
        system_time: Of the block to be.
        new_state: How far a polled source is with it.
        place: The digest of where that state came from.
        settlement: What waited in quarantine and is this batch, or its rows.
        resent_from: Its records, where they were rows of quarantine.
        has_limits: The limits of the dataset's rules hold; not for what a person looked at and sends again.
        is_converted: Its rows went through the converters before.
        key: Under which it is asked for once; None: each time it is asked for.
        clock: Measures the stages on this side; has what was done before.
    """

    path: Path
    shown_as: str
    event_time: Timestamp
    system_time: Timestamp
    new_state: SourceState | None = None
    place: bytes | None = None
    settlement: Settlement | None = None
    resent_from: tuple[RowId, ...] = ()
    has_limits: bool = True
    is_converted: bool = False
    key: IngestKey | None = None
    clock: StageClock = field(default_factory=StageClock)

    def figures_with(self, response: IngestResponse) -> tuple[StageFigures, ...]:
        """List what was measured so far, here and by the engine, in the order in which it began."""
        return tuple(sorted((*self.clock.figures, *response.statistics.stages), key=lambda each: each.began_s))

    @property
    def fetched_place(self) -> FetchedPlace | None:
        """What is noted beside the block: only dates need it, an ETag names its version wherever it is (ING-26)."""
        state = self.new_state
        return (
            None if state is None or not state.is_date or self.place is None else FetchedPlace(state.value, self.place)
        )


def entry_of(
    record: DatasetRecord,
    source: SetPollingSource | AddPushSource,
    batch: Batch,
    object_hash: Multihash,
    row_count: int,
    sequence_number: int | None,
) -> QuarantineFile:
    """Say what of a batch is set aside in an object, beside a block where there is one."""
    return QuarantineFile(
        dataset_id=record.id,
        sequence_number=sequence_number,
        object_hash=object_hash,
        row_count=row_count,
        source=batch.shown_as,
        created_at=batch.system_time,
        push_source=source.source_name if isinstance(source, AddPushSource) else None,
        resent_from=batch.resent_from,
    )


def note_stages(
    store: StageStore, record: DatasetRecord, sequence_number: int | None, stages: Sequence[StageFigures]
) -> None:
    """Keep figures, beside a block where there is one."""
    # Behind the commit, and for people: whoever reads the figures misses one batch, and nothing else does.
    with suppress(OdfError):
        store.note_stages(record.id, sequence_number, stages)


@contextmanager
def noting_failure(
    store: StageStore, record: DatasetRecord, clock: StageClock, run: Run, *, is_rehearsal: bool
) -> Iterator[None]:
    """Keep what the stages did of an ingest that fails while the block runs; of a rehearsal nothing.

    Args:
        store: Where.
        record: The dataset.
        clock: Has what was measured on this side, where the run has no figures yet.
        run: What is observed; it gets them, too.
        is_rehearsal: Nothing is kept.
    """
    try:
        yield
    except OdfError:
        run.stages = run.stages or clock.figures
        if not is_rehearsal:
            note_stages(store, record, None, run.stages)
        raise
