"""Root datasets: fetch, prepare, read, convert, validate, merge, commit; and set a watermark by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, Final

from odf_engines.contract import ReferencedRows
from odf_engines.stage_metrics import IngestStage, StageClock
from odf_node.datasets.chains import load_view
from odf_node.datasets.referencing import References
from odf_node.datasets.writer import ChainWriter
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.home import Home
from odf_node.home_folder import name_session
from odf_node.ingest.batch import Batch, Root
from odf_node.ingest.changed_sources import check_changed_sources, evolve
from odf_node.ingest.concurrent_writes import ConcurrentWrites
from odf_node.ingest.followed_rows import FollowedRows, find_place
from odf_node.ingest.keyed import key_for
from odf_node.ingest.looked_into import LookedInto
from odf_node.ingest.manifest_check import ManifestCheck
from odf_node.ingest.push_sources import choose_push_source
from odf_node.ingest.report import IngestReport
from odf_node.ingest.source_variables import digest_of_place, fill_in, list_variables
from odf_node.ingest.taking import BatchTaker
from odf_node.ports.observing import Run
from odf_node.ports.progress import NO_PROGRESS, OnProgress
from odf_node.ports.sources import Fetched, Prepared, SourceNotFoundError, SourceReader, UpToDate
from odf_node.records.datasets import DatasetRecord
from odf_node.threads import finish_in_thread
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import OdfError
from odf_protocol.events import (
    AddData,
    DatasetKind,
    SourceState,
)
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_protocol.events import Event, FetchStep, PrepStep
    from odf_protocol.manifest import DatasetSnapshot

MAX_BATCHES: Final = 10_000
"""Batches of one poll.  # guess: years of daily files; a source that always says that it has more comes to an end"""


@dataclass(frozen=True, slots=True)
class Ingestor:
    """The use case behind ``odf-node pull`` of a root dataset and ``odf-node ingest``."""

    home: Home
    engines: EngineHost
    sources: SourceReader
    environment: Mapping[str, str]
    is_rehearsal: bool = False

    @property
    def rehearsing(self) -> "Ingestor":
        """One that does everything but keep the result: behind ``--dry-run`` (ING-25)."""
        return replace(self, is_rehearsal=True)

    @property
    def taker(self) -> BatchTaker:
        """What takes in each batch."""
        parts = self.home, self.engines, self.sources, self.environment, self._references
        return BatchTaker(*parts, is_rehearsal=self.is_rehearsal)

    @property
    def writes(self) -> ConcurrentWrites:
        """What takes in batches of several writers at once."""
        return ConcurrentWrites(self.home, self.taker)

    def check_manifest(self, snapshot: "DatasetSnapshot", added: Sequence["DatasetSnapshot"] = ()) -> None:
        """Reject a manifest that could never be pulled or pushed to (ING-18).

        Args:
            snapshot: The manifest.
            added: Manifests of datasets that are made together with it, and may be looked into (CONV-8).

        Raises:
            SnapshotError: It could not.
        """
        beside = tuple(each for each in added if each.name.lower() != snapshot.name.lower())
        looked_into = LookedInto(self.home.store, (snapshot, *beside))

        def find_columns(name: str) -> ReferencedRows | None:
            circle = looked_into.find_circle(name, snapshot.name)
            if len(circle) > 2:  # those of one are told as such
                raise UnknownDatasetError(f"a circle of which no dataset has rows to look into: {', '.join(circle)}")
            if any(each.name.lower() == name.lower() for each in beside):
                return None
            return self._references.find_columns(name, of=snapshot.name)

        engine = self.engines.get_ingest_engine()
        ManifestCheck(self.sources, engine, find_columns).check(snapshot)
        self._followed.check(snapshot)

    def check_changes(self, record: DatasetRecord, events: Sequence["Event"]) -> None:
        """Reject to change sources so that their rows would not fit the dataset (ING-20); ``check_manifest`` is first.

        Raises:
            UsageError: They would not.
        """

        def find_columns(name: str) -> ReferencedRows | None:
            return self._references.find_columns(name, of=record.name)

        view = load_view(self.home.store, record.id)
        check_changed_sources(record.name, view, events, find_columns)

    def evolve(self, record: DatasetRecord, events: Sequence["Event"]) -> tuple["Event", ...]:
        """Add to changes of a dataset the schema that the columns of its changed sources ask for (SCHEMA-5)."""

        def find_columns(name: str) -> ReferencedRows | None:
            return self._references.find_columns(name, of=record.name)

        return evolve(load_view(self.home.store, record.id), events, find_columns)

    @property
    def _followed(self) -> FollowedRows:
        return FollowedRows(self.home.store, self.home.objects, self.engines.rows)

    @property
    def _references(self) -> References:
        return References(self.home.store, self.home.objects, self.engines.rows)

    async def poll(
        self,
        record: DatasetRecord,
        *,
        writing_time: Callable[[DatasetRecord], Timestamp],
        on_progress: OnProgress = NO_PROGRESS,
    ) -> IngestReport:
        """Fetch what the polling source has, and take in what is new, piece by piece until nothing waits (ING-19).

        Args:
            record: A root with a polling source.
            writing_time: The system time of the next block of a dataset.
            on_progress: Hears how far it is.

        Returns:
            One report of all batches; where one fails after others were taken, it says why.

        Raises:
            As ``poll_next``, where the first batch fails.
        """
        report = await self.poll_next(record, system_time=writing_time(record), on_progress=on_progress)
        # A rehearsal keeps nothing, so the source would give the same piece again.
        while report.has_more and report.batches < MAX_BATCHES and not self.is_rehearsal:
            on_progress(f"{record.name}: {report.batches} taken ({report.counts.describe()}), asking for the next")
            try:
                time = writing_time(report.record)
                following = await self.poll_next(
                    report.record, system_time=time, on_progress=on_progress, waiting=report.waiting
                )
            except OdfError as error:
                return replace(report, failure=error)
            report = report.plus(following)
        return report

    async def poll_next(
        self,
        record: DatasetRecord,
        *,
        system_time: Timestamp,
        on_progress: OnProgress = NO_PROGRESS,
        waiting: tuple[str, ...] = (),
    ) -> IngestReport:
        """Fetch the next piece of what the polling source has, and take it in.

        Args:
            record: The dataset.
            system_time: Of the next block.
            on_progress: Hears how far it is.
            waiting: What the report of the piece just before says.

        Raises:
            UsageError: The dataset declares no polling source.
            EngineMissingError: No engine is here for what it declares; nothing was fetched.
            SourceUnavailableError, SourceNotFoundError: The source did not answer, or has nothing there.
            InvalidSourceError: What it gave cannot be read at all.
            BatchRejectedError: Too many of its rows cannot.
        """
        with self.taker.observing(record) as run:
            return await self._poll_next(record, run, system_time=system_time, on_progress=on_progress, waiting=waiting)

    async def _poll_next(
        self,
        record: DatasetRecord,
        run: Run,
        *,
        system_time: Timestamp,
        on_progress: OnProgress,
        waiting: tuple[str, ...],
    ) -> IngestReport:
        view, clock = load_view(self.home.store, record.id), StageClock()
        source = view.polling_source
        if source is None:
            hint = "push data with 'odf-node ingest'" if view.push_sources else "it declares no source at all"
            raise UsageError(f"'{record.name}' has no polling source; {hint}")
        self.engines.require_ingest(source)
        step = fill_in(source.fetch, self.environment)
        place = digest_of_place(step)
        self.home.folder.staging.mkdir(parents=True, exist_ok=True)
        with (
            self.taker.noting_failure(record, clock, run),
            self.home.objects.writing(),
            TemporaryDirectory(dir=self.home.folder.staging, prefix="source-") as folder,
        ):
            try:
                state, session = self._state_of(view, place), name_session(record.id)
                with clock.measuring_alone(IngestStage.FETCH, _kind_of(step)):
                    fetched = await self._fetch(
                        step, record, state, Path(folder), session, now=system_time, waiting=waiting
                    )
            except SourceNotFoundError as error:
                names = list_variables(source.fetch)
                if not names:
                    raise
                reason = f"{error.reason}; ${' or $'.join(names)} of the environment says where the source is"
                raise SourceNotFoundError(error.source, reason) from error
            if isinstance(fetched, UpToDate):
                return IngestReport(record, up_to_date=True, batches=0)
            on_progress(f"{record.name}: taking in {fetched.name}")
            prepared = await self._prepare(source.prepare or (), fetched, Path(folder), clock)
            name, new_state = fetched.name, fetched.source_state
            event_time = fetched.event_time or system_time
            batch = Batch(
                prepared.path,
                name,
                event_time,
                system_time,
                new_state,
                place=place,
                clock=clock,
                unread=prepared.unread,
            )
            report = await finish_in_thread(lambda: self.taker.take_part(Root(record, view, source), batch, run))
        await finish_in_thread(self._drop_superseded)
        # A source that has more and names no new state would give the same piece for ever.
        has_more = fetched.has_more and new_state not in {None, view.source_state}
        return replace(report, has_more=has_more, waiting=fetched.waiting if has_more else ())

    async def _fetch(
        self,
        step: "FetchStep",
        record: DatasetRecord,
        state: SourceState | None,
        folder: Path,
        session: str,
        *,
        now: Timestamp,
        waiting: tuple[str, ...],
    ) -> Fetched | UpToDate:
        followed = find_place(step)
        if followed is None:
            return await self.sources.fetch(step, state=state, now=now, folder=folder, session=session, waiting=waiting)
        return await finish_in_thread(
            lambda: self._followed.fetch(followed, record, state=state, folder=folder, now=now)
        )

    async def _prepare(
        self, steps: "tuple[PrepStep, ...]", fetched: Fetched, folder: Path, clock: StageClock
    ) -> Prepared:
        path, unread = fetched.path, list[str]()
        if not steps:
            return Prepared(path)
        with clock.measuring(IngestStage.PREPARE):
            for position, step in enumerate(steps):
                with clock.measuring(IngestStage.PREPARE, _kind_of(step), position):
                    prepared = await self.sources.prepare(step, path=path, name=fetched.name, folder=folder)
                if path != fetched.path:
                    path.unlink()
                path = prepared.path
                unread += prepared.unread
        return Prepared(path, tuple(unread))

    def _state_of(self, view: DatasetView, place: bytes | None) -> SourceState | None:
        """Return how far the source is read; a date that belongs to another place says nothing of this one (ING-26)."""
        state = view.source_state
        if state is None or not state.is_date or place is None:
            return state
        noted = self.home.store.find_fetched_place(view.dataset_id, state.value)
        return state if noted in {None, place} else None

    def push(
        self,
        record: DatasetRecord,
        file: Path | BinaryIO,
        *,
        source_name: str | None,
        shown_as: str,
        event_time: Timestamp | None,
        system_time: Timestamp,
        key: str | None = None,
        caller: str = "",
    ) -> IngestReport:
        """Take in one file, or what is left of a stream, through a push source.

        Args:
            record: A root of this node.
            file: What is taken in.
            source_name: Of the push source; None: the only one.
            shown_as: What people call the file.
            event_time: Of rows that have none; None: the system time.
            system_time: Of the block to be.
            key: The same again under this key does nothing, and is answered as the first time (FEED-1).
            caller: Whose key it is.

        Raises:
            UsageError: There is no such push source, or several and none was named.
            EngineMissingError: No engine is here for what it declares; the file was not touched.
            SourceNotFoundError, SourceUnavailableError, SourceTooLargeError: The file is not to be had.
            InvalidSourceError: The file cannot be read at all.
            BatchRejectedError: Too many of its rows cannot.
            KeyReusedError: Something else was asked under the key.
            WritersBusyError: Others wrote to the dataset all the time; nothing was taken.
        """
        source = choose_push_source(record, load_view(self.home.store, record.id), source_name)
        self.engines.require_ingest(source)
        self.home.folder.staging.mkdir(parents=True, exist_ok=True)
        with self.home.objects.writing(), TemporaryDirectory(dir=self.home.folder.staging, prefix="source-") as folder:
            path = self.sources.take(file, name=shown_as, folder=Path(folder))
            batch = Batch(path, shown_as, event_time or system_time, system_time)
            if key is not None:
                asked = {"source": source.source_name, "event_time": None if event_time is None else str(event_time)}
                keyed = key_for(caller, key, path, asked)
                batch = replace(batch, key=keyed)

            def prepare(current: DatasetRecord, view: DatasetView) -> tuple[Root, Batch]:
                # Whoever was faster may have a later time than the batch came with (CHAIN-8).
                later = replace(batch, system_time=max(batch.system_time, view.system_time))
                return Root(current, view, choose_push_source(current, view, source_name)), later

            report = self.writes.take(record, prepare, key=batch.key)
        self._drop_superseded()
        return report

    def _drop_superseded(self) -> None:
        """Remove the projected state before the ingest, as large as the dataset itself, which nothing names any more.

        Called after the lease has ended; where somebody else writes, the next ingest or clean-up removes it.
        """
        self.home.objects.delete_unnamed(self.home.store.is_referenced_object)

    def set_watermark(self, record: DatasetRecord, watermark: Timestamp, *, system_time: Timestamp) -> IngestReport:
        """State that no older event is expected, without adding rows.

        Raises:
            UsageError: The dataset is a derivative, or its watermark is later already.
        """
        view = load_view(self.home.store, record.id)
        if view.kind is not DatasetKind.ROOT:
            raise UsageError(f"'{record.name}' is a derivative: its watermark follows from its inputs")
        if view.watermark == watermark:
            return IngestReport(record, up_to_date=True)
        if view.watermark is not None and watermark < view.watermark:
            raise UsageError(f"the watermark of '{record.name}' is {view.watermark} already and cannot go back")
        writer = ChainWriter.continue_chain(self.home.store, self.home.keys, record.id, after=view.head)
        event = AddData(
            prev_checkpoint=view.prev_checkpoint,
            prev_offset=view.last_offset,
            new_watermark=watermark,
            new_source_state=view.source_state,
        )
        writer.add(event, system_time=system_time)
        # No row changed, so the projected state after the new block is the one before it.
        updated = writer.commit(
            signed_at=system_time,
            objects=self.home.objects,
            staged={},
            merge_state=self.taker.find_merge_state(view),
        )
        return IngestReport(updated, up_to_date=False, new_blocks=1)


def _kind_of(step: "FetchStep | PrepStep") -> str:
    """Name a step as manifests do: ``Url``, ``Decompress``."""
    return type(step).__name__.removeprefix("FetchStep").removeprefix("PrepStep")
