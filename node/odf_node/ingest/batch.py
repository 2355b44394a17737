"""One batch that is to be taken in, the limits that it is held to, and what is kept of its stages (STAGE-4, 5)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odf_engines.contract import IngestResponse, QuarantineReason
from odf_engines.stage_metrics import StageClock, StageMetrics
from odf_node.ingest.report import StageSample, describe_reasons
from odf_node.ports.observing import Run
from odf_node.records.commits import FetchedPlace
from odf_node.records.datasets import DatasetRecord
from odf_node.records.ingests import IngestKey
from odf_node.records.quarantine import QuarantineFile, RowId, SettledRows
from odf_node.row_counts import RowCounts
from odf_node.store import MetadataStore
from odf_node.wording import count_of
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.events import AddPushSource, SetPollingSource, SourceState
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class WriteTerms(ABC):
    """What a write asks of its batch beside an ingest."""

    @abstractmethod
    def check(self, response: IngestResponse, counts: RowCounts) -> None:
        """Look at what an engine made of the batch, before anything is kept; raise to keep nothing.

        Raises:
            OdfError: Rows of it cannot be taken, or would become what they must not.
        """

    @abstractmethod
    def describe(self, counts: RowCounts) -> ExtraAttributes:
        """Give what the block states of the write."""


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
        unread: Files of an archive beside the one that is read (ING-49).
        terms: Of a write that is made whole or not at all; its rows go through no reader and wait nowhere.
    """

    path: Path
    shown_as: str
    event_time: Timestamp
    system_time: Timestamp
    new_state: SourceState | None = None
    place: bytes | None = None
    settlement: SettledRows | None = None
    resent_from: tuple[RowId, ...] = ()
    has_limits: bool = True
    is_converted: bool = False
    key: IngestKey | None = None
    clock: StageClock = field(default_factory=StageClock)
    unread: tuple[str, ...] = ()
    terms: "WriteTerms | None" = None

    def metrics_with(self, response: IngestResponse) -> tuple[StageMetrics, ...]:
        """List what was measured so far, here and by the engine, in the order in which it began."""
        return tuple(sorted((*self.clock.figures, *response.statistics.stages), key=lambda each: each.began_s))

    @property
    def fetched_place(self) -> FetchedPlace | None:
        """What is noted beside the block: only dates need it, an ETag names its version wherever it is (ING-26)."""
        state = self.new_state
        return (
            None if state is None or not state.is_date or self.place is None else FetchedPlace(state.value, self.place)
        )


@dataclass(frozen=True, slots=True)
class Root:
    """Where a batch goes.

    Attributes:
        record: The dataset.
        view: Of its chain.
        source: How the batch is read and merged.
    """

    record: DatasetRecord
    view: DatasetView
    source: SetPollingSource | AddPushSource

    @property
    def push_source(self) -> str | None:
        """The name of the source, None for the polling source."""
        return self.source.source_name if isinstance(self.source, AddPushSource) else None


def entry_of(
    root: Root, batch: Batch, object_hash: Multihash, row_count: int, sequence_number: int | None
) -> QuarantineFile:
    """Say what of a batch is set aside in an object, beside a block where there is one."""
    return QuarantineFile(
        dataset_id=root.record.id,
        sequence_number=sequence_number,
        object_hash=object_hash,
        row_count=row_count,
        source=batch.shown_as,
        created_at=batch.system_time,
        push_source=root.push_source,
        resent_from=batch.resent_from,
    )


def note_stages(
    store: MetadataStore,
    record: DatasetRecord,
    sequence_number: int | None,
    stages: Sequence[StageMetrics],
    row_counts: RowCounts | None = None,
) -> None:
    """Keep figures, beside a block where there is one, and what became of the rows of an ingest that did not fail."""
    # Behind the commit, and for people: whoever reads the figures misses one batch, and nothing else does.
    with suppress(OdfError):
        plain = None if row_counts is None else row_counts.to_json()
        store.note_stages(record.id, sequence_number, stages, plain)


@contextmanager
def noting_failure(
    store: MetadataStore, record: DatasetRecord, clock: StageClock, run: Run, *, is_rehearsal: bool
) -> Iterator[None]:
    """Keep what the stages did of an ingest that fails while the block runs; of a rehearsal nothing.

    Args:
        store: What the home keeps.
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


LARGEST_BAD_SHARE: Final = 0.5
"""Share of its rows that a batch may lose where its manifest says nothing else.  # guess: most is too much"""

_OF_TIMES: Final = ("day", "RFC 3339")
"""Words in the reasons of ING-4 that are about dates and times."""


class BatchRejectedError(MalformedError):
    """A batch breaks a limit, so nothing of it was taken.

    Attributes:
        dataset: Name of the dataset.
        source: What people call the file.
        rows: Rows of the batch.
        bad_rows: Those in quarantine.
        why: The limit.
        reasons: The commonest.
        is_kept: The bad rows are in quarantine; else nothing is kept, as it is a rehearsal.
        samples: Rows behind each stage, of a rehearsal.
    """

    def __init__(
        self,
        dataset: str,
        source: str,
        *,
        rows: int,
        bad_rows: int,
        why: str,
        reasons: tuple[QuarantineReason, ...],
        is_kept: bool = True,
        samples: tuple[StageSample, ...] = (),
    ) -> None:
        super().__init__("batch", where=source)
        self.dataset = dataset
        self.source = source
        self.rows = rows
        self.bad_rows = bad_rows
        self.why = why
        self.reasons = reasons
        self.samples = samples
        which = "none" if bad_rows >= rows else f"only {rows - bad_rows:,}" if bad_rows else "each"
        fix = "; if dates are written in another way, say so with dateFormat or timestampFormat in the read step"
        about_times = any(word in each.reason for each in reasons for word in _OF_TIMES)
        reported = f" {describe_reasons(reasons)}{fix if about_times else ''};" if reasons else ""
        outcome = "nothing of it was" if is_kept else "nothing of it would be"
        shows = f" 'odf-node quarantine show {dataset}' shows"
        sent = "fixed or let pass, it is sent again with 'odf-node quarantine resend'"
        let_pass = f"'odf-node quarantine resend {dataset} ENTRY --release' lets it pass"
        waits = f"{shows} its bad rows; {sent}" if bad_rows else f"{shows} it and its ENTRY; {let_pass}"
        tail = waits if is_kept else ""
        of_rows = f"{which} of {count_of(rows, 'row')} of {source}"
        self.args = (f"{dataset}: {of_rows} could be taken, and {outcome} ({why}).{reported}{tail}",)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is rejected as a whole.

    Attributes:
        largest_bad_share: Share of its rows that may be in quarantine, from 0 to 1; None: nothing is declared.
        largest_bad_rows: How many rows may be in quarantine.
        largest_bad_rows_per_code: How many may have an error of this code.
        least_of_last: Fewest rows of a batch, as a multiple of those of the one before; 0.5 is half of them.
        most_of_last: Most rows, likewise.
        largest_retracted_share: Share of the current rows that a snapshot may retract by not having them (ING-47).
    """

    largest_bad_share: float | None = None
    largest_bad_rows: int | None = None
    largest_bad_rows_per_code: Mapping[str, int] = field(default_factory=dict)
    least_of_last: float | None = None
    most_of_last: float | None = None
    largest_retracted_share: float | None = None

    @property
    def compares(self) -> bool:
        """Whether the batch before matters."""
        return self.least_of_last is not None or self.most_of_last is not None

    def find_reason(
        self,
        response: IngestResponse,
        last_size: int | None = None,
        *,
        retracted: int = 0,
        current_rows: int = 0,
    ) -> str | None:
        """Say why a batch is rejected; None where it is not.

        All rows are too many too, unless the manifest says which share is not.

        Args:
            response: What the engine made of the batch.
            last_size: Rows of the batch before, None for the first.
            retracted: Rows that it takes back.
            current_rows: Of the dataset before it, where it is a snapshot.
        """
        if response.batch_faults:
            return "; ".join(response.batch_faults)
        rows, bad = response.statistics.rows_in, response.quarantined_rows
        share = LARGEST_BAD_SHARE if self.largest_bad_share is None else self.largest_bad_share
        if bad > share * rows or (bad >= rows > 0 and self.largest_bad_share is None):
            return f"at most {share:.0%} may fail"
        if self.largest_bad_rows is not None and bad > self.largest_bad_rows:
            return f"at most {count_of(self.largest_bad_rows, 'row')} may fail"
        for code, most in self.largest_bad_rows_per_code.items():
            if response.quarantine_codes.get(code, 0) > most:
                return f"at most {count_of(most, 'row')} may fail with the code {code}"
        if self.largest_retracted_share is not None and retracted > self.largest_retracted_share * current_rows > 0:
            of_rows = f"{retracted:,} of {count_of(current_rows, 'current row')}"
            allowed = f"{self.largest_retracted_share:.4g}"
            return f"it lacks {of_rows}, which would be retracted; largestRetractedShare allows {allowed} of them"
        return None if last_size is None else self._compare(rows, last_size)

    def _compare(self, rows: int, last: int) -> str | None:
        reported = f"the batch before had {count_of(last, 'row')}, this one has {rows:,}"
        if self.least_of_last is not None and rows < self.least_of_last * last:
            return f"{reported}: fewer than {self.least_of_last:g} times as many"
        if self.most_of_last is not None and rows > self.most_of_last * last:
            return f"{reported}: more than {self.most_of_last:g} times as many"
        return None
