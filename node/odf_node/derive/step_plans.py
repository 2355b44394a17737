"""What a derivative's query is, and what its next step would read, without running it (PLAN-16)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from odf_engines.contract import TransformClass
from odf_node.datasets.chains import iter_slices, load_view
from odf_node.derive.grading import MEANINGS, GradedTransform, TransformGrader
from odf_node.derive.step_log import StepLog, StoredStep
from odf_node.derive.steps import StepBuilder
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.chain.state import InputProgress
from odf_protocol.chain.stored_state import decode_state
from odf_protocol.coverage import decode_progress
from odf_protocol.did import DatasetId
from odf_protocol.events import DatasetKind, SetTransform
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import PlannedInput, StepBound

PER_STEP: Final = "per step"
"""What a query is called whose engine keeps nothing: it sees the new rows of each step, and no others."""

_COSTS: Final = {
    TransformClass.MAP: "the query over the new rows",
    TransformClass.MAINTAINED: "the query twice, over all rows of its inputs before the step and after it",
    TransformClass.FINAL: "the query over what its watermarks close; subsets too old to count for that are not read",
}

# What is left out of the inputs of a final query of this kind rests on the earliest time that is asked for.
_AS_OF_COST: Final = (
    "; slow over long histories, as what it does besides its join as of a time asks for all times: give the joined "
    "rows a dataset of their own, which computes new answers only, and let this query read that"
)


@dataclass(frozen=True, slots=True)
class InputPlan:
    """What a step would read of one input.

    Attributes:
        alias: What the query calls it.
        dataset: Its name in this node.
        dataset_id: Which.
        new_rows: That no step has read yet and the next one reads.
        read_rows: That the next step reads, new or not; of a final query at most.
        read_bytes: Of the files that it reads for them.
        watermark: The newest that the input states, None where it states none.
        waiting_rows: New as well, and left for the steps after it.
    """

    alias: str
    dataset: str
    dataset_id: DatasetId
    new_rows: int
    read_rows: int
    read_bytes: int
    watermark: Timestamp | None
    waiting_rows: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A derivative, or what a manifest would make one.

    ``inputs`` is empty where an input is not here; ``is_due``: its next step would have something to read;
    ``newest``: what its newest step did, where a step record says it; ``is_as_of``: its query joins as of a time.
    """

    dataset: str
    engine: str
    graded: GradedTransform
    inputs: tuple[InputPlan, ...]
    is_due: bool
    newest: StoredStep | None = None
    is_as_of: bool = False

    @property
    def kind(self) -> str | None:
        """Class of the query, None where it is rejected or not known yet."""
        grade = self.graded.grade
        if grade is None or self.graded.rejection is not None:
            return None
        return PER_STEP if grade.transform_class is None else grade.transform_class.value

    @property
    def meaning(self) -> str:
        """What the class promises to readers."""
        kind = None if self.graded.grade is None else self.graded.grade.transform_class
        return "each step by itself, over its new rows" if kind is None else MEANINGS[kind]

    @property
    def cost(self) -> str:
        """What a step computes."""
        kind = None if self.graded.grade is None else self.graded.grade.transform_class
        cost = "the query over the new rows" if kind is None else _COSTS[kind]
        return cost + _AS_OF_COST * (self.is_as_of and kind is TransformClass.MAINTAINED)

    @property
    def stages(self) -> tuple[str, ...]:
        """What the query does with its rows; empty where its engine does not say."""
        return () if self.graded.grade is None else self.graded.grade.stages

    @property
    def key(self) -> tuple[str, ...] | None:
        """Columns by which a changed row is a correction; None where there are none known."""
        return None if self.graded.grade is None else self.graded.grade.key

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        rejection = self.graded.rejection
        return {
            "dataset": self.dataset,
            "engine": self.engine,
            "class": self.kind,
            "grade": self.graded.to_json(),
            "refused": None
            if rejection is None
            else {"expression": rejection.expression, "reason": rejection.reason, "rewrite": rejection.rewrite},
            "key": None if self.key is None else list(self.key),
            "stages": list(self.stages),
            "cost": self.cost if self.kind else None,
            "isDue": self.is_due,
            "newestStep": None
            if self.newest is None
            else {
                "block": self.newest.sequence_number,
                **self.newest.statistics.to_json(),
                "statisticsAre": str(self.newest.basis),
            },
            "inputs": [
                {
                    "alias": each.alias,
                    "name": each.dataset,
                    "id": str(each.dataset_id),
                    "newRows": each.new_rows,
                    "readRows": each.read_rows,
                    "readBytes": each.read_bytes,
                    "waitingRows": each.waiting_rows,
                    "watermark": None if each.watermark is None else str(each.watermark),
                }
                for each in self.inputs
            ],
        }


@dataclass(frozen=True, slots=True)
class StepPlanner:
    """The use case behind ``odf-node inspect plan``; writes nothing."""

    store: MetadataStore
    builder: StepBuilder
    steps: StepLog
    grader: TransformGrader
    bound: StepBound

    def plan_dataset(self, record: DatasetRecord) -> StepPlan:
        """Look at a derivative of this node.

        Raises:
            UsageError: It declares no query.
            EngineMissingError: Its engine is not installed here.
            EngineError: The engine failed.
        """
        view = load_view(self.store, record.id)
        if view.transform is None:
            raise UsageError(f"'{record.name}' is no derivative: it declares no query")
        _head, state = self.store.get_chain_state(record.id)
        taken = decode_state(state).progress_by_input()
        engines = self.grader.engines
        engine = engines.choose_build(view.transform.transform)
        if record.origin is Origin.OWN:
            graded = self.grader.grade(record.name, view.transform, view.vocabulary, engines.own_session(engine))
        else:  # whatever its query does to an engine, it does to no other
            with engines.foreign_session(engine) as session:
                graded = self.grader.grade(record.name, view.transform, view.vocabulary, session)
        plan = self._plan(record.name, view.transform, graded, taken, is_new=view.schema is None)
        return replace(plan, newest=self.steps.find_newest(record))

    def plan_snapshots(self, snapshots: Sequence[DatasetSnapshot]) -> list[StepPlan]:
        """Look at the derivatives that manifests would make.

        Raises:
            UsageError: There is none among them.
            EngineMissingError: An engine is not installed here.
            EngineError: An engine failed.
        """
        plans = []
        for snapshot in snapshots:
            for event in snapshot.metadata if snapshot.kind is DatasetKind.DERIVATIVE else ():
                if isinstance(event, SetTransform):
                    session = self.grader.engines.own_session(self.grader.engines.choose_build(event.transform))
                    graded = self.grader.grade_declared(snapshot, event, session)
                    plans.append(self._plan(str(snapshot.name), event, graded, {}, is_new=True))
        if not plans:
            raise UsageError("the manifest describes no derivative, so there is no query to plan")
        return plans

    def _plan(
        self,
        dataset: str,
        declared: SetTransform,
        graded: GradedTransform,
        taken: Mapping[DatasetId, InputProgress],
        *,
        is_new: bool,
    ) -> StepPlan:
        records = [self.grader.find_input(item.dataset_ref) for item in declared.inputs]
        held = [record for record in records if record is not None]
        engine = declared.transform.engine
        is_as_of = bool(declared.transform.temporal_tables)
        if len(held) < len(records):
            return StepPlan(dataset, engine, graded, (), is_due=False, is_as_of=is_as_of)
        planned = self.builder.plan_inputs((record.id for record in held), taken, self.bound)
        kind = None if graded.grade is None else graded.grade.transform_class
        inputs = tuple(
            self._plan_input(
                item.alias or item.dataset_ref, record, each, is_whole=bool(kind and kind.reads_whole_inputs)
            )
            for item, record, each in zip(declared.inputs, held, planned, strict=True)
        )
        is_due = is_new or not all(each.is_empty for each in planned)
        return StepPlan(dataset, engine, graded, inputs, is_due=is_due, is_as_of=is_as_of)

    def _plan_input(self, alias: str, record: DatasetRecord, planned: PlannedInput, *, is_whole: bool) -> InputPlan:
        recorded, interval = planned.recorded, planned.offset_interval
        slices = planned.slices
        end = recorded.prev_offset if interval is None else interval.end
        progress = decode_progress(self.store.get_chain_state(record.id)[1])
        read_rows = 0 if interval is None else interval.row_count
        if is_whole and end is not None:
            slices = tuple(each for each in iter_slices(self.store, record.id) if each.offset_interval.start <= end)
            read_rows = end + 1
        return InputPlan(
            alias=alias,
            dataset=record.name,
            dataset_id=record.id,
            new_rows=0 if interval is None else interval.row_count,
            read_rows=read_rows,
            read_bytes=sum(each.size for each in slices),
            watermark=progress.watermark,
            waiting_rows=progress.row_count - (0 if end is None else end + 1),
        )
