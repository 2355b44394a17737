"""Taking in one batch: an engine reads, validates and merges it, and one commit makes all of it true, or nothing.

Source: ``spec/ingest.md``; clauses QUAR-2 and QUAR-3 in ``spec/quarantine.md``.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from odf_engines.contract import IngestRequest, IngestResponse, ReferencedRows
from odf_engines.ingest.state import count_state_rows
from odf_engines.stage_metrics import IngestStage, StageClock
from odf_engines.strategies.contract import Keeps
from odf_engines.strategies.registry import strategy_of
from odf_node.datasets.chains import iter_slices
from odf_node.datasets.changelogs import TAKING, Changelogs
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.referencing import References
from odf_node.datasets.writer import ChainWriter, StagedOutputs
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from odf_node.ingest.batch import Batch, BatchRejectedError, Root, entry_of, note_stages, noting_failure
from odf_node.ingest.encodings import as_utf8, decode_source
from odf_node.ingest.ingest_rules import IngestRules, find_rules
from odf_node.ingest.keyed import answer_of
from odf_node.ingest.report import IngestReport, rehearse, sample_stages
from odf_node.ingest.waiting import WaitingBatches
from odf_node.ports.observing import Run, RunKind, columns_of_schema, version_of
from odf_node.ports.sources import SourceReader
from odf_node.records.datasets import DatasetRecord
from odf_node.records.ingests import KeptAnswer
from odf_node.records.quarantine import QuarantineFile, SettledRows
from odf_node.row_counts import RowCounts
from odf_protocol.block_notes import LookedUp, note_lookups
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DataSlice,
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    SetDataSchema,
    SetPollingSource,
)
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of, rows_schema_of
from odf_protocol.timestamp import Timestamp

__all__ = ["Batch", "BatchTaker"]


@dataclass(frozen=True, slots=True)
class BatchTaker:
    """Takes in batches of roots; the caller holds a writing lease.

    ``environment`` has the secrets of converters (CONV-6). With ``is_rehearsal`` it does everything but keep the result
    (ING-25).
    """

    home: Home
    engines: EngineHost
    sources: SourceReader
    environment: Mapping[str, str]
    references: References
    is_rehearsal: bool = False

    @property
    def waiting(self) -> WaitingBatches:
        """What keeps batches that break a limit."""
        return WaitingBatches(self.home, self.engines.workspace)

    def take(self, root: Root, batch: Batch) -> IngestReport:
        """Take in a batch, and let the observer hear of it, for the errors see ``take_part``."""
        with self.observing(root.record) as run, self.noting_failure(root.record, batch.clock, run):
            return self.take_part(root, batch, run)

    def observing(self, record: DatasetRecord) -> AbstractContextManager[Run]:
        """Let the observer hear of an ingest while the block runs."""
        return self.engines.observer.observing(Run(kind=RunKind.INGEST, dataset=version_of(record)))

    def noting_failure(self, record: DatasetRecord, clock: StageClock, run: Run) -> AbstractContextManager[None]:
        """Keep figures of an ingest that fails while the block runs."""
        return noting_failure(self.home.store, record, clock, run, is_rehearsal=self.is_rehearsal)

    def take_part(self, root: Root, batch: Batch, run: Run) -> IngestReport:
        """Take in a batch.

        Args:
            root: Where it goes.
            batch: The batch.
            run: What is observed.

        Raises:
            InvalidSourceError: It cannot be read at all.
            BatchRejectedError: It breaks a limit; it waits whole.
            UnknownDatasetError, UsageError, ObjectsAbsentError: Nothing can be looked up in a dataset that it names.
            SettledError: What it settles does not wait any more.
        """
        record, source = root.record, root.source
        if source.preprocess is not None:
            self.engines.find_preprocess_engine(source.preprocess)
        rules = find_rules(root.view.attachments)
        batch = batch if self.is_rehearsal else self.waiting.settle_twins(record, batch)
        looked_up: list[LookedUp] = []
        request = self._request(root, batch, rules, looked_up)
        response = self._ask_engine(batch, request)
        counts = RowCounts.of_response(response, source.merge, has_query=source.preprocess is not None)
        counts = replace(counts, unread=batch.unread)
        if batch.terms is not None:
            batch.terms.check(response, counts)
        samples = sample_stages(response) if self.is_rehearsal else ()
        last = self.home.store.find_batch_size(record.id, root.push_source) if rules.limits.compares else None
        is_snapshot = isinstance(request.merge, MergeStrategySnapshot) and request.state_path is not None
        current = count_state_rows(request.state_path) if is_snapshot and request.state_path else 0
        why = (
            rules.limits.find_reason(response, last, retracted=counts.retracted, current_rows=current)
            if batch.has_limits
            else None
        )
        run.stages, run.bad_rows = batch.metrics_with(response), response.quarantined_rows
        if why is not None:
            if not self.is_rehearsal:
                self.waiting.keep(root, batch, response, why)
            raise BatchRejectedError(
                record.name,
                batch.shown_as,
                rows=response.statistics.rows_in,
                bad_rows=response.quarantined_rows,
                why=why,
                reasons=response.quarantine_reasons,
                is_kept=not self.is_rehearsal,
                samples=samples,
            )
        if self.is_rehearsal:
            return replace(rehearse(record, root.view.watermark, response, counts, samples), stages=run.stages)
        with batch.clock.measuring(IngestStage.PERSIST) as persist:
            report = self._commit(root, batch, response, counts, looked_up)
            persist.count(rows_in=report.new_rows, rows_out=report.new_rows)
        report = replace(report, stages=batch.metrics_with(response))
        run.stages, run.rows = report.stages, report.new_rows
        run.written = None if report.up_to_date else version_of(report.record, columns_of_schema(response.schema))
        number = None if report.up_to_date else report.record.head.sequence_number
        note_stages(self.home.store, record, number, report.stages, report.counts)
        if not batch.resent_from:
            # Behind the commit: a kill between them leaves the comparison with the batch before, and nothing else.
            self.home.store.put_batch_size(record.id, root.push_source, response.statistics.rows_in)
        return report

    def _request(self, root: Root, batch: Batch, rules: IngestRules, looked_up: list[LookedUp]) -> IngestRequest:
        """Say what an engine is to do; ``looked_up`` gets what it may look into."""
        view, source = root.view, root.source

        def find_rows(name: str) -> ReferencedRows:
            rows, where = self.references.get(name, batch.system_time)
            looked_up.append(where)
            return rows

        converters = () if batch.is_converted else rules.converters
        # Rows that are sent again were taken apart before.
        is_read = batch.resent_from or batch.terms is not None
        reader = None if is_read or rules.reader is None else rules.reader.find_call()
        return IngestRequest(
            dataset_id=str(root.record.id),
            read=as_utf8(source.read),
            preprocess=source.preprocess,
            merge=source.merge,
            vocabulary=view.vocabulary,
            source_path=decode_source(self.sources, source.read, path=batch.path, name=batch.shown_as),
            source_name=batch.shown_as,
            known_schema=view.schema,
            state_path=self._merge_state(view, source),
            system_time=batch.system_time,
            fallback_event_time=batch.event_time,
            next_offset=view.next_offset,
            prev_watermark=view.watermark,
            reader=reader,
            strategy=None if rules.strategy is None else rules.strategy.find_call(),
            converters=tuple(each.find_call(self.environment, find_rows) for each in converters),
            validators=tuple(each.find_call(find_rows) for each in rules.validators),
            limits=self.engines.limits,
            has_samples=self.is_rehearsal,
        )

    def _ask_engine(self, batch: Batch, request: IngestRequest) -> IngestResponse:
        """Let an engine ingest; it says of itself what took how long, within the time that it had."""
        with batch.clock.measuring(IngestStage.ENGINE) as sums:
            response = self.engines.ingest(request)
        reported = tuple(each.within(sums.began_s, sums.ended_s) for each in response.statistics.stages)
        # What is left is the engine's start, what brings files to it and from it, and the check of what it gave.
        sums.seconds = max(sums.seconds - sum(each.seconds for each in reported if not each.plug_in), 0.0)
        return replace(response, statistics=replace(response.statistics, stages=reported))

    def commit_event(
        self,
        record: DatasetRecord,
        view: DatasetView,
        event: AddData,
        settlement: SettledRows,
        *,
        system_time: Timestamp,
    ) -> DatasetRecord:
        """Write a block without rows, and settle what it is about.

        Raises:
            SettledError: What it settles does not wait any more.
        """
        writer = ChainWriter.continue_chain(self.home.store, self.home.keys, record.id, after=view.head)
        writer.add(event, system_time=system_time)
        state = self.find_merge_state(view)
        return writer.commit(
            signed_at=system_time, objects=self.home.objects, staged={}, merge_state=state, settlement=settlement
        )

    def find_merge_state(self, view: DatasetView) -> Multihash | None:
        """Find the projected state after the head, None where it has to be computed again."""
        known = self.home.store.find_merge_state(view.dataset_id, view.head)
        return known if known is not None and self.home.objects.has(known) else None

    def _merge_state(self, view: DatasetView, source: SetPollingSource | AddPushSource) -> Path | None:
        """Find the projected state after the head; compute it from history where it is missing."""
        if view.last_offset is None or strategy_of(source.merge).keeps is Keeps.NOTHING:
            return None
        known = self.find_merge_state(view)
        # Another push source of the dataset may have left it, with another key or strategy.
        engine = self.engines.get_ingest_engine()
        rows = EngineRows(self.home.store, self.home.objects, self.engines.rows)
        assert view.schema is not None
        of_change = (view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time)
        fields = rows_schema_of(view.schema)
        columns = [each for each in fields if each.name not in of_change]
        if known is not None:
            path = rows.get_merge_state(known)
            if engine.fits_state(path, source.merge, view.next_offset, columns):
                return path
        slices = rows.get_paths(view.dataset_id, tuple(iter_slices(self.home.store, view.dataset_id)), view.schema)
        target = self.engines.workspace / "rebuilt-state.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        engine.rebuild_state(slices, source.merge, view.vocabulary, target)
        return target

    def _commit(
        self, root: Root, batch: Batch, response: IngestResponse, counts: RowCounts, looked_up: Sequence[LookedUp]
    ) -> IngestReport:
        record = root.record
        settled = self.waiting.list_files(record, batch.settlement)
        writer = ChainWriter.continue_chain(self.home.store, self.home.keys, record.id, after=root.view.head)
        with ExitStack() as stack:
            outputs = StagedOutputs(self.home.objects, stack)
            new_data = outputs.stage_slice(response.data_path, response.offset_interval, response.logical_hash)
            # Where nothing stands, a merge has nothing to take back; a stream's operations are its source's (ROWS-13),
            # but for those of a write, which are this node's.
            is_of_source = isinstance(root.source.merge, MergeStrategyChangelogStream) and batch.terms is None
            if new_data and root.view.schema and not is_of_source:
                changelogs = Changelogs(self.home.store, self.home.objects, self.engines.rows)
                counted = response.statistics.rows_by_operation
                taken = None if counted is None else sum(counted[op] for op in TAKING)
                changelogs.require_sound(root.view, new_data, outputs.staged[new_data.physical_hash].path, taken=taken)
            note = _note_of(batch, counts, looked_up) if new_data else None
            _add_blocks(writer, root.view, batch, response, new_data, note)
            merge_state = outputs.stage(response.state_path).hash if response.state_path else None
            number = writer.state.sequence_number if writer.has_blocks and writer.state else None
            quarantine = None
            if response.quarantine_path is not None:
                bad_rows = outputs.stage(response.quarantine_path).hash
                quarantine = entry_of(root, batch, bad_rows, response.quarantined_rows, number)
            sequence_number = record.head.sequence_number if number is None else number
            report = IngestReport(
                record,
                up_to_date=not writer.has_blocks,
                new_rows=new_data.offset_interval.row_count if new_data else 0,
                counts=counts,
                quarantine_reasons=response.quarantine_reasons,
                warnings=response.warnings,
                new_blocks=sequence_number - record.head.sequence_number,
                seconds=response.statistics.seconds,
            )
            answer = None if batch.key is None else answer_of(batch.key, report, sequence_number)
            if not writer.has_blocks:
                self._keep_without_block(record, batch, quarantine, outputs, answer)
            else:
                superseded = self.home.store.find_newest_merge_state(record.id)
                updated = writer.commit(
                    signed_at=batch.system_time,
                    objects=self.home.objects,
                    staged=outputs.staged,
                    named=(new_data.physical_hash,) if new_data else (),
                    quarantine=quarantine,
                    fetched_place=batch.fetched_place,
                    answer=answer,
                    merge_state=merge_state,
                    settlement=batch.settlement,
                )
                report = replace(report, record=updated)
                if new_data is not None:
                    rows_of_engines = EngineRows(self.home.store, self.home.objects, self.engines.rows)
                    rows_of_engines.adopt(new_data.physical_hash, self.engines.roles.ingest)
                if merge_state is not None and superseded not in {None, merge_state}:
                    self.home.objects.delete_later([superseded])
            self.home.objects.delete_later(settled)
        return report

    def _keep_without_block(
        self,
        record: DatasetRecord,
        batch: Batch,
        quarantine: QuarantineFile | None,
        outputs: StagedOutputs,
        answer: KeptAnswer | None,
    ) -> None:
        if quarantine is not None:
            self.home.objects.put(outputs.staged[quarantine.object_hash], quarantine.object_hash)
        if answer is not None:
            self.home.store.put_answer(record.id, answer, quarantine, batch.settlement)
        elif batch.settlement is not None:
            self.home.store.settle(record.id, batch.settlement, quarantine)
        elif quarantine is not None:
            self.home.store.put_quarantine(quarantine)


def _note_of(batch: Batch, counts: RowCounts, looked_up: Sequence[LookedUp]) -> ExtraAttributes | None:
    """Join what a block with rows states of itself beside them."""
    notes = [note_lookups(looked_up), None if batch.terms is None else batch.terms.describe(counts)]
    joined = {name: value for note in notes if note is not None for name, value in note.to_dict().items()}
    return ExtraAttributes.of(joined) if joined else None


def _add_blocks(
    writer: ChainWriter,
    view: DatasetView,
    batch: Batch,
    response: IngestResponse,
    new_data: DataSlice | None,
    note: ExtraAttributes | None,
) -> None:
    """Add what the chain does not say yet: the schema with the first rows; rows, watermark and state of the source."""
    if view.schema is None:
        schema = data_schema_of(response.schema)
        writer.add(SetDataSchema(schema=schema), system_time=batch.system_time)
    if new_data or response.watermark != view.watermark or batch.new_state != view.source_state:
        event = AddData(
            prev_checkpoint=view.prev_checkpoint,
            prev_offset=view.last_offset,
            new_data=new_data,
            new_watermark=response.watermark,
            new_source_state=batch.new_state,
            extra=note,
        )
        writer.add(event, system_time=batch.system_time)
