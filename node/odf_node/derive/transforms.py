"""Derivative datasets: the request of a step (``StepBuilder``), and running the next ones.

``replaying`` builds the same request of a recorded step. Clauses: PLAN-1 to PLAN-15 in ``spec/transform.md``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import odf_protocol
from odf_engines.contract import Limits, TransformInput, TransformRequest, TransformResponse
from odf_engines.contract import Watermark as EngineWatermark
from odf_engines.engine import Engine
from odf_node.datasets.chains import blocks_between, get_block, last_offset_at, load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.datasets.writer import ChainWriter, StagedOutputs
from odf_node.derive.replay_records import make_record, sign_record
from odf_node.derive.step_figures import StepClock, TransformReport, figures_of, naming_step, note_step, run_of_step
from odf_node.derive.whole_inputs import WholeInputs
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UsageError
from odf_node.ports import DatasetNotFoundError, DatasetRecord, KeyStore, ObjectStore, StoredObjects
from odf_node.ports.chains import ChainStore
from odf_node.ports.commits import CommitStore
from odf_node.ports.evidence import DocumentStore
from odf_node.ports.object_names import ObjectNames
from odf_node.ports.progress import UNHEARD, Count, Say
from odf_protocol.chain.state import InputProgress
from odf_protocol.chain.stored_state import decode_state
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    Checkpoint,
    ExecuteTransform,
    ExecuteTransformInput,
    SetDataSchema,
    SetTransform,
)
from odf_protocol.schema_compat import is_same
from odf_protocol.step_statistics import StepStatistics
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import (
    STEP_BOUND,
    PlannedInput,
    StepBound,
    find_step_end,
    input_ids,
    next_interval,
    plan_input,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a derivative: what is read, and the request that says so, to which ``EngineRows`` adds the rows."""

    engine: str
    transform: SetTransform
    inputs: tuple[PlannedInput, ...]
    request: TransformRequest


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an engine answered, and in which figures; None: nobody counted."""

    engine: Engine
    response: TransformResponse
    figures: StepStatistics | None


@dataclass(frozen=True, slots=True)
class StepBuilder:
    """Turns plans into requests, with inputs read from this node's own accepted copies (ACCEPT-7)."""

    chains: ChainStore
    object_names: ObjectNames
    objects: StoredObjects

    def plan_next(self, view: DatasetView, bound: StepBound | None) -> tuple[PlannedInput, ...]:
        """Plan what the inputs gained since the newest step that read them, up to a bound; None: all of it.

        Raises:
            UsageError: The dataset declares no transform.
            DatasetNotFoundError: An input is not held here.
        """
        if view.transform is None:
            raise UsageError(f"dataset {view.dataset_id} declares no transform")
        _head, state = self.chains.get_chain_state(view.dataset_id)
        return self.plan_inputs(input_ids(view.transform), decode_state(state).progress_by_input(), bound)

    def plan_inputs(
        self, inputs: Iterable[DatasetId], taken: Mapping[DatasetId, InputProgress], bound: StepBound | None
    ) -> tuple[PlannedInput, ...]:
        """Plan what inputs gained since earlier steps took them so far, as ``plan_next``.

        Raises:
            DatasetNotFoundError: An input is not held here.
        """
        planned = []
        for dataset_id in inputs:
            if self.chains.find_dataset(dataset_id) is None:
                raise DatasetNotFoundError(dataset_id)
            previous = taken.get(dataset_id)
            first = None if previous is None else previous.block_hash
            gained = blocks_between(self.chains, dataset_id, first, self.chains.get_head(dataset_id).hash)
            end = find_step_end(previous, gained, bound)
            planned.append(self.plan_recorded(next_interval(dataset_id, previous, end)))
        return tuple(planned)

    def reaches_heads(self, planned: Iterable[PlannedInput]) -> bool:
        """Say whether inputs are read to their ends as they are held here."""
        return all(
            (item.recorded.new_block_hash or item.recorded.prev_block_hash)
            == self.chains.get_head(item.recorded.dataset_id).hash
            for item in planned
        )

    def plan_recorded(self, recorded: ExecuteTransformInput) -> PlannedInput:
        """Collect what a recorded interval holds in the copy held here.

        Raises:
            BlockNotFoundError: The copy lacks a block that the step names.
            RejectedError: PLAN-5.
        """
        self._check_start(recorded)
        blocks = blocks_between(self.chains, recorded.dataset_id, recorded.prev_block_hash, recorded.new_block_hash)
        return plan_input(recorded, blocks)

    def _check_start(self, recorded: ExecuteTransformInput) -> None:
        """Check that an interval starts where it says, so that none of the input's rows is left out (PLAN-5)."""
        if recorded.prev_block_hash is None:
            last_offset = None
        else:
            first = get_block(self.chains, recorded.dataset_id, recorded.prev_block_hash).sequence_number
            last_offset = last_offset_at(self.chains, recorded.dataset_id, first)
            if recorded.new_block_hash is not None:
                last = get_block(self.chains, recorded.dataset_id, recorded.new_block_hash).sequence_number
                if last <= first:
                    raise RejectedError(
                        f"PLAN-5 recorded-blocks-go-forward (input {recorded.dataset_id})",
                        expected=f"a block after {first}",
                        found=f"block {last}",
                    )
        if recorded.prev_offset != last_offset:
            raise RejectedError(
                f"PLAN-5 recorded-offset-is-of-recorded-blocks (input {recorded.dataset_id})",
                expected="none before" if last_offset is None else f"{last_offset} before",
                found="none before" if recorded.prev_offset is None else f"{recorded.prev_offset} before",
            )

    def build(
        self,
        view: DatasetView,
        inputs: Sequence[PlannedInput],
        *,
        system_time: Timestamp,
        limits: Limits,
        checkpoint: Path | None,
    ) -> Step:
        """Make the request for one step of the dataset that ``view`` (the state before the step) shows, but its rows.

        ``checkpoint`` is what the query in force left, as this node computed it (PLAN-12).
        """
        transform = view.transform
        assert transform is not None
        request = TransformRequest(
            dataset_id=str(view.dataset_id),
            transform=transform.transform,
            vocabulary=view.vocabulary,
            inputs=tuple(
                self._engine_input(planned, alias.alias or alias.dataset_ref)
                for planned, alias in zip(inputs, transform.inputs, strict=True)
            ),
            system_time=system_time,
            next_offset=view.next_offset,
            prev_checkpoint=checkpoint,
            prev_watermark=view.watermark,
            limits=limits,
        )
        return Step(transform.transform.engine, transform, tuple(inputs), request)

    def _engine_input(self, planned: PlannedInput, alias: str) -> TransformInput:
        last = planned.recorded.new_block_hash or planned.recorded.prev_block_hash
        upto = None
        if last is not None:
            stored = self.chains.find_block(planned.recorded.dataset_id, last)
            upto = stored.sequence_number if stored else None
        record = self.chains.find_dataset(planned.recorded.dataset_id)
        if record is not None:
            Presence(self.object_names, self.objects).require_checked(
                record, (item.physical_hash for item in planned.slices)
            )
        source = load_view(self.chains, planned.recorded.dataset_id, upto=upto)
        if source.schema is None:
            raise RejectedError(
                f"PLAN-5 recorded-blocks-say-what-columns-there-are (input {planned.recorded.dataset_id})",
                expected="a schema at the last block read",
                found="none",
            )
        return TransformInput(
            dataset_id=str(planned.recorded.dataset_id),
            alias=alias,
            vocabulary=source.vocabulary,
            schema=source.schema,
            slices=(),
            hashes=tuple(item.physical_hash for item in planned.slices),
            offset_interval=planned.offset_interval,
            watermarks=tuple(
                EngineWatermark(system_time=mark.system_time, event_time=mark.event_time, last_offset=mark.last_offset)
                for mark in planned.watermarks
            ),
        )


@dataclass(frozen=True, slots=True)
class Transformer:
    """The use case behind ``odf-node pull`` of a derivative of our own."""

    chains: ChainStore
    commits: CommitStore
    documents: DocumentStore
    object_names: ObjectNames
    objects: ObjectStore
    keys: KeyStore
    engines: EngineHost
    bound: StepBound = STEP_BOUND

    @property
    def builder(self) -> StepBuilder:
        """What plans its steps."""
        return StepBuilder(self.chains, self.object_names, self.objects)

    def run(
        self, record: DatasetRecord, *, writing_time: Callable[[], Timestamp], say: Say = UNHEARD
    ) -> TransformReport:
        """Run steps until the derivative has seen everything that its inputs gained (PLAN-13).

        Args:
            record: Which.
            writing_time: Gives the system time of the next step.
            say: Hears before each step but the first how many new rows of the inputs are taken, and of how many.

        Raises:
            EngineError: The engine refused the query, failed, or is not installed; steps before stay.
        """
        reports: list[TransformReport] = []
        while not reports or not (reports[-1].up_to_date or reports[-1].reaches_heads):
            if reports:
                taken = sum(report.taken_rows for report in reports)
                say("computing", Count(taken, taken + self._count_waiting(record), "rows"))
            reports.append(self.run_next(record, system_time=writing_time()))
        return TransformReport(
            reports[-1].record,
            up_to_date=reports[0].up_to_date,
            new_rows=sum(report.new_rows for report in reports),
            new_blocks=sum(report.new_blocks for report in reports),
            read_rows=sum(report.read_rows for report in reports),
            late_rows=sum(report.late_rows for report in reports),
            seconds=sum(report.seconds for report in reports),
        )

    def _count_waiting(self, record: DatasetRecord) -> int:
        planned = self.builder.plan_next(load_view(self.chains, record.id), bound=None)
        return _count_rows(planned)

    def run_next(self, record: DatasetRecord, *, system_time: Timestamp) -> TransformReport:
        """Run one step over what the inputs gained, up to the bound, and commit it.

        Raises:
            EngineError: The engine refused the query, failed, or is not installed.
        """
        bound = self.bound
        while True:
            report = self._run_bounded(record, bound, system_time)
            if not report.up_to_date or report.reaches_heads:
                return report
            # Nothing that a block could record came of it (CHAIN-13), so the step has to read more.
            bound = bound.widened()

    def _run_bounded(self, record: DatasetRecord, bound: StepBound, system_time: Timestamp) -> TransformReport:
        view = load_view(self.chains, record.id)
        builder = self.builder
        planned = builder.plan_next(view, bound)
        if all(item.is_empty for item in planned) and view.schema is not None and builder.reaches_heads(planned):
            return TransformReport(record, up_to_date=True)
        if any(load_view(self.chains, item.recorded.dataset_id).schema is None for item in planned):
            return TransformReport(record, up_to_date=True)
        reaches_heads = builder.reaches_heads(planned)
        system_time = max(system_time, *(item.known_at for item in planned if item.known_at is not None), system_time)
        # Our own chain: what it names was computed here.
        checkpoint = None if view.query_checkpoint is None else self.objects.get_path(view.query_checkpoint)
        step = builder.build(view, planned, system_time=system_time, limits=self.engines.limits, checkpoint=checkpoint)
        assert view.transform is not None
        step = replace(step, engine=self.engines.choose_build(view.transform.transform))
        engine = self.engines.get_engine(step.engine)
        run = run_of_step(self.chains, record, planned, step.request, step.engine)
        with self.objects.writing(), self.engines.observer.observing(run):
            clock = StepClock()
            with clock.measuring("starting"):
                session = self.engines.publishing_session(step.engine)
            rows = EngineRows(self.chains, self.objects, self.engines.rows)
            with clock.measuring("reading"):
                request = rows.put_into(step.request, planned)
            whole_inputs = WholeInputs(self.chains, self.object_names, rows)
            completed = whole_inputs.complete(request, planned, session, is_redefined=view.is_redefined, clock=clock)
            with clock.measuring("checking"), naming_step(record, completed.request):
                response = session.transform(completed.request)
            clock.split("checking", "computing", response.statistics.seconds)
            figures = figures_of(response, completed, checkpoint, milliseconds=clock.milliseconds)
            report = self._commit(
                record, view, step, StepResult(engine, response, figures), notes_progress=not reaches_heads
            )
            note_step(run, report, response, clock)
        return replace(report, reaches_heads=reaches_heads, taken_rows=_count_rows(planned))

    def _commit(
        self,
        record: DatasetRecord,
        view: DatasetView,
        step: Step,
        result: StepResult,
        *,
        notes_progress: bool,
    ) -> TransformReport:
        response = result.response
        writer = ChainWriter.continue_chain(self.chains, self.commits, self.documents, self.keys, record.id)
        system_time = step.request.system_time
        schema = odf_protocol.schema_arrow.data_schema_of(response.schema)
        if view.schema is not None and not is_same(schema, view.schema):
            raise UsageError(
                f"the query of {record.name} gives other columns than the dataset has, as an input has others now; "
                "make a new dataset whose query names its columns"
            )
        with ExitStack() as stack:
            outputs = StagedOutputs(self.objects, stack)
            if view.schema is None:
                writer.add(SetDataSchema(schema=schema), system_time=system_time)
            new_data = outputs.stage_slice(response.data_path, response.offset_interval, response.logical_hash)
            new_checkpoint = None
            if response.checkpoint_path is not None:
                part = outputs.stage(response.checkpoint_path)
                new_checkpoint = Checkpoint(physical_hash=part.hash, size=part.size_bytes)
            is_news = new_data is not None or new_checkpoint is not None or response.watermark != view.watermark
            # Without rows, a step that is not the last one notes how far it came, where a block can (CHAIN-13).
            if is_news or (notes_progress and response.watermark is not None):
                event = ExecuteTransform(
                    query_inputs=tuple(item.recorded for item in step.inputs),
                    prev_checkpoint=view.prev_checkpoint,
                    prev_offset=view.last_offset,
                    new_data=new_data,
                    new_checkpoint=new_checkpoint,
                    new_watermark=response.watermark,
                )
                replay = sign_record(
                    writer.key, make_record(step.request, step.inputs, view, result.engine, result.figures)
                )
                writer.add(event, system_time=system_time, replay_record=replay)
            if not writer.has_blocks:
                return TransformReport(record, up_to_date=True)
            updated = writer.commit(
                signed_at=system_time, objects=self.objects, staged=outputs.staged, named=tuple(outputs.staged)
            )
            if new_data is not None:
                EngineRows(self.chains, self.objects, self.engines.rows).adopt(new_data.physical_hash, step.engine)
        return TransformReport(
            updated,
            up_to_date=False,
            new_rows=new_data.offset_interval.row_count if new_data else 0,
            new_blocks=updated.head.sequence_number - record.head.sequence_number,
            read_rows=response.statistics.rows_in,
            late_rows=response.statistics.late_rows,
            seconds=response.statistics.seconds,
        )


def _count_rows(planned: Iterable[PlannedInput]) -> int:
    return sum(item.offset_interval.row_count for item in planned if item.offset_interval is not None)
