"""Derivative datasets: running the next steps, and committing what came of each.

``replaying`` runs recorded steps again. Clauses: PLAN-1 to PLAN-15 in ``spec/transform.md``.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from odf_engines.contract import TransformResponse
from odf_engines.engine import Engine
from odf_node.datasets.chains import load_view
from odf_node.datasets.changelogs import TAKING, Changelogs
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.writer import ChainWriter, StagedOutputs
from odf_node.derive.holding import InputHeldError, InputMovedError, find_holds, judge_inputs
from odf_node.derive.rows_meant import check_meant
from odf_node.derive.step_measurements import (
    StepClock,
    TransformReport,
    metrics_of,
    naming_step,
    note_step,
    run_of_step,
)
from odf_node.derive.step_records import make_record, sign_record
from odf_node.derive.steps import Step, StepBuilder
from odf_node.derive.waiting import find_waited_for
from odf_node.derive.whole_inputs import WholeInputs
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.ports.progress import NO_PROGRESS, Count, OnProgress
from odf_node.records.datasets import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import Checkpoint, DataSlice, ExecuteTransform, SetDataSchema
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import find_slice_incompatibility, is_same
from odf_protocol.step_metrics import StepMetrics
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import STEP_BOUND, PlannedInput, StepBound


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an engine answered, and in which figures; None: nobody counted."""

    engine: Engine
    response: TransformResponse
    figures: StepMetrics | None


@dataclass(frozen=True, slots=True)
class Transformer:
    """The use case behind ``odf-node pull`` of a derivative of our own."""

    home: Home
    engines: EngineHost
    bound: StepBound = STEP_BOUND

    @property
    def builder(self) -> StepBuilder:
        """What plans steps over all that inputs have."""
        return StepBuilder(self.home.store, self.home.objects)

    def builder_of(self, record: DatasetRecord) -> StepBuilder:
        """Make what plans the steps of a derivative, up to where its inputs may be read (PLAN-21)."""
        return StepBuilder(self.home.store, self.home.objects, find_holds(self.home, record))

    def run(
        self, record: DatasetRecord, *, writing_time: Callable[[], Timestamp], on_progress: OnProgress = NO_PROGRESS
    ) -> TransformReport:
        """Run steps until the derivative has seen everything that its inputs gained (PLAN-13).

        Args:
            record: Which.
            writing_time: Gives the system time of the next step.
            on_progress: Called before each step but the first: how many new rows of the inputs are taken, of how many.

        Raises:
            EngineError: The engine rejected the query, failed, or is not installed; steps before stay.
            InputHeldError: A rule that holds an input back fails the pull (PLAN-21); steps before it stay.
        """
        judge_inputs(self.home, self.engines, record)
        reports: list[TransformReport] = []
        while not reports or not (reports[-1].up_to_date or reports[-1].reaches_heads):
            if reports:
                taken = sum(report.taken_rows for report in reports)
                on_progress("computing", Count(taken, taken + self._count_waiting(record), "rows"))
            reports.append(self.run_next(record, system_time=writing_time()))
        holds = tuple(find_holds(self.home, record).values())
        if any(each.fails for each in holds):
            raise InputHeldError(record.name, holds)
        return TransformReport(
            reports[-1].record,
            up_to_date=reports[0].up_to_date,
            new_rows=sum(report.new_rows for report in reports),
            new_blocks=sum(report.new_blocks for report in reports),
            read_rows=sum(report.read_rows for report in reports),
            late_rows=sum(report.late_rows for report in reports),
            seconds=sum(report.seconds for report in reports),
            waits_for=tuple(each.name for each in find_waited_for(self.home.store, record)),
            holds=holds,
        )

    def _count_waiting(self, record: DatasetRecord) -> int:
        planned = self.builder_of(record).plan_next(load_view(self.home.store, record.id), bound=None)
        return _count_rows(planned)

    def run_next(self, record: DatasetRecord, *, system_time: Timestamp) -> TransformReport:
        """Run one step over what the inputs gained, up to the bound, and commit it.

        Raises:
            EngineError: The engine rejected the query, failed, or is not installed.
        """
        bound = self.bound
        while True:
            report = self._run_bounded(record, bound, system_time)
            if not report.up_to_date or report.reaches_heads:
                return report
            # Nothing that a block could record came of it (CHAIN-13), so the step has to read more.
            bound = bound.widened()

    def _plan_judged(
        self, record: DatasetRecord, view: DatasetView, bound: StepBound
    ) -> tuple[StepBuilder, tuple[PlannedInput, ...]]:
        """Plan a step over what was judged: of a block that came after the holds were found nothing is read (PLAN-21).

        Raises:
            InputMovedError: What holds the inputs back changed each time.
        """
        builder = self.builder_of(record)
        for _attempt in range(_MAX_PLANS):
            planned = builder.plan_next(view, bound)
            later = self.builder_of(record)
            if later.ends == builder.ends:
                return builder, planned
            builder = later
        raise InputMovedError(record.name)

    def _run_bounded(self, record: DatasetRecord, bound: StepBound, system_time: Timestamp) -> TransformReport:
        view = load_view(self.home.store, record.id)
        builder, planned = self._plan_judged(record, view, bound)
        if all(item.is_empty for item in planned) and view.schema is not None and builder.reaches_heads(planned):
            return TransformReport(record, up_to_date=True)
        if any(load_view(self.home.store, item.recorded.dataset_id).schema is None for item in planned):
            return TransformReport(record, up_to_date=True)
        if any(item.recorded.prev_block_hash is item.recorded.new_block_hash is None for item in planned):
            return TransformReport(record, up_to_date=True)  # all of it is held back
        reaches_heads = builder.reaches_heads(planned)
        system_time = max(system_time, *(item.known_at for item in planned if item.known_at is not None), system_time)
        # Our own chain: what it names was computed here.
        checkpoint = None if view.query_checkpoint is None else self.home.objects.get_path(view.query_checkpoint)
        step = builder.build(view, planned, system_time=system_time, limits=self.engines.limits, checkpoint=checkpoint)
        assert view.transform is not None
        step = replace(step, engine=self.engines.choose_build(view.transform.transform))
        engine = self.engines.get_engine(step.engine)
        run = run_of_step(self.home.store, record, planned, step.request, step.engine)
        with self.home.objects.writing(), self.engines.observer.observing(run):
            clock = StepClock()
            with clock.measuring("starting"):
                session = self.engines.publishing_session(step.engine)
            rows = EngineRows(self.home.store, self.home.objects, self.engines.rows)
            with clock.measuring("reading"):
                request = rows.put_into(step.request, planned)
            whole_inputs = WholeInputs(self.home.store, rows)
            completed = whole_inputs.complete(request, planned, session, is_redefined=view.is_redefined, clock=clock)
            if view.schema is None and engine.is_stepwise and completed.grade is not None:
                # Its inputs had no columns when it was added, so nobody could tell.
                check_meant(self.home.store, record.name, step.transform, view.attachments, completed.grade)
            with clock.measuring("checking"), naming_step(record, completed.request):
                response = session.transform(completed.request)
            clock.split("checking", "computing", response.statistics.seconds)
            figures = metrics_of(response, completed, checkpoint, milliseconds=clock.milliseconds)
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
        writer = ChainWriter.continue_chain(self.home.store, self.home.keys, record.id, after=view.head)
        system_time = step.request.system_time
        schema = data_schema_of(response.schema)
        if view.schema is not None and not is_same(schema, view.schema):
            differs = find_slice_incompatibility(view.schema, schema) or "an attribute of a column changed"
            raise UsageError(
                f"the query of {record.name} gives other columns than the dataset has: {differs}; where an input's "
                "columns changed, make a new dataset whose query names its columns"
            )
        with ExitStack() as stack:
            outputs = StagedOutputs(self.home.objects, stack)
            if view.schema is None:
                writer.add(SetDataSchema(schema=schema), system_time=system_time)
            new_data = outputs.stage_slice(response.data_path, response.offset_interval, response.logical_hash)
            if new_data is not None:
                self._require_sound(replace(view, schema=schema), new_data, outputs, response)
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
                writer.add(event, system_time=system_time, step_record=replay)
            if not writer.has_blocks:
                return TransformReport(record, up_to_date=True)
            updated = writer.commit(
                signed_at=system_time, objects=self.home.objects, staged=outputs.staged, named=tuple(outputs.staged)
            )
            if new_data is not None:
                EngineRows(self.home.store, self.home.objects, self.engines.rows).adopt(
                    new_data.physical_hash, step.engine
                )
        return TransformReport(
            updated,
            up_to_date=False,
            new_rows=new_data.offset_interval.row_count if new_data else 0,
            new_blocks=updated.head.sequence_number - record.head.sequence_number,
            read_rows=response.statistics.rows_in,
            late_rows=response.statistics.late_rows,
            seconds=response.statistics.seconds,
        )

    def _require_sound(
        self, view: DatasetView, new_data: DataSlice, outputs: StagedOutputs, response: TransformResponse
    ) -> None:
        counted = response.statistics.rows_by_operation
        taken = None if counted is None else sum(counted[op] for op in TAKING)
        changelogs = Changelogs(self.home.store, self.home.objects, self.engines.rows)
        changelogs.require_sound(view, new_data, outputs.staged[new_data.physical_hash].path, taken=taken)


_MAX_PLANS: Final = 10
"""Plans of one step while its inputs grow.  # guess: the second one ends at a block before what was not judged"""


def _count_rows(planned: Iterable[PlannedInput]) -> int:
    return sum(item.offset_interval.row_count for item in planned if item.offset_interval is not None)
