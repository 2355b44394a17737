"""Grade a transform before a dataset is made of it (ENGINE-7, PLAN-8), and say how far its query reaches.

The grade is the engine's, on the plan that it makes of the query; for that it has to know the columns of the inputs. A
derivative of datasets that have none yet is graded with its first step, before anything of it is written.

A query reaches over all rows of its inputs, or over those that are new in a step. Engines of the first kind say it of
each query (VIEW-1). Of one of the second kind it holds whatever the query, and whoever reads its derivatives has to
know it (FUSION-5, FUSION-10 in ``spec/extensions/engine-contract.md``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from odf_engines.contract import Finding, Grade, GradeLevel, QueryTable, TransformClass
from odf_engines.engine import Capability, TransformSession
from odf_engines.errors import EngineMissingError, NotReproducibleError
from odf_engines.registry import engines_offering, get_engine
from odf_node.datasets.chains import load_view
from odf_node.derive.rows_meant import check_meant, find_record
from odf_node.derive.waiting import gives_by_watermarks
from odf_node.engines.finding import choose_build, get_engine_here
from odf_node.engines.sessions import EngineHost
from odf_node.ports.engines import EngineFiles
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import HomeCorruptError
from odf_node.store import MetadataStore
from odf_protocol.events import DatasetKind, SetAttachments, SetTransform, SetVocab
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.vocabulary import Vocabulary

PER_STEP = (
    "per step: each one by itself, over what its inputs gained; aggregates, joins, windows and limits are of one step"
)


def describe_reach(record: DatasetRecord, store: MetadataStore, engine_files: EngineFiles | None) -> str | None:
    """Say of a derivative whose engine is not told about earlier rows what that means, and what would mean all of them.

    Returns:
        A line; None for any other dataset, and where the engine is not here.
    """
    transform = load_view(store, record.id).transform if record.kind is DatasetKind.DERIVATIVE else None
    if transform is None:
        return None
    try:
        if not get_engine_here(choose_build(transform.transform, None, engine_files), engine_files).is_stepwise:
            return None
    except (EngineMissingError, HomeCorruptError):
        return None
    whole = [name for name in engines_offering(Capability.TRANSFORM) if not get_engine(name).is_stepwise]
    if not whole:
        return PER_STEP
    return f"{PER_STEP}; a dataset of the same query with 'engine: {whole[0]}' is over all rows, and corrected"


_OUTER_JOINS = ("joins (left outer)", "joins (right outer)", "joins (full outer)")
_AT_ONCE = (
    "a row without a partner is given at once, and corrected or retracted when one comes; engines of streams wait "
    "until none can come any more, as a window above a join with a bound in event time does here"
)
MEANINGS = {
    TransformClass.MAP: "each row follows from one row of its input",
    TransformClass.MAINTAINED: "corrected whenever its inputs change; each step computes the query over all of them",
    TransformClass.FINAL: "given once, when watermarks allow no other answer; what comes too late is counted",
}
"""What a class means for who reads the dataset, and what it costs (VIEW-1)."""


@dataclass(frozen=True, slots=True)
class GradedTransform:
    """A transform and its grade; where there is none yet, ``reason`` says why.

    ``is_stepwise`` is that of its engine; ``waits_for`` are inputs that state no watermark, without which it gives no
    rows (PLAN-20); ``event_time`` is the name of that column, ``is_taken``: nobody declared it, it is the only time of
    the result (GATE-18).
    """

    dataset: str
    grade: Grade | None
    reason: str = ""
    is_stepwise: bool = False
    waits_for: tuple[str, ...] = ()
    event_time: str = Vocabulary().event_time
    is_taken: bool = False

    @property
    def rejection(self) -> Finding | None:
        """Why no dataset is made of it, with what would pass; None where one can be."""
        if self.grade is None:
            return None
        return self.grade.findings[0] if self.grade.level is GradeLevel.REJECTED else self.grade.obstacle

    @property
    def states_no_watermark(self) -> str:
        """Why it never states a watermark, and what would; empty where it does, or where nobody says."""
        if self.grade is None or self.grade.follows_watermarks is not False:
            return ""
        name = self.event_time
        return (
            f"its {name} is no event time of its inputs, so windows and joins as of a time above it wait for ever; an "
            f"input's {name} as it is, max({name}) of a group, greatest(...) of those of several inputs, or "
            f"date_trunc('DAY', {name}), AS {name} would follow its inputs' watermarks"
        )

    def describe(self) -> list[str]:
        """Say it in lines for people."""
        if self.grade is None:
            return [f"{self.dataset}: whether others can repeat its query shows at its first step: {self.reason}"]
        kind = self.grade.transform_class
        meaning = f", {kind.value}: {MEANINGS[kind]}" if kind else f", {PER_STEP}" if self.is_stepwise else ""
        lines = [f"{self.dataset}: {self.grade.level.value}{meaning}"]
        lines += [f"  {each.expression}: {each.reason}" for each in self.grade.findings]
        if self.is_taken:
            lines.append(
                f"  event time: {self.event_time}, the only date or timestamp of the result, is taken for it "
                f"(SetVocab with 'eventTimeColumn: {self.event_time}')"
            )
        if any(each.startswith(_OUTER_JOINS) for each in self.grade.stages) and kind is TransformClass.MAINTAINED:
            lines.append(f"  outer join: {_AT_ONCE}")
        if self.states_no_watermark:
            lines.append(f"  states no watermark: {self.states_no_watermark}")
        lines += [
            f"  gives no rows before {each} states a watermark, which it has not so far" for each in self.waits_for
        ]
        return lines

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        if self.grade is None:
            return {"level": None, "reason": self.reason}
        findings = [
            {"expression": each.expression, "reason": each.reason, "rewrite": each.rewrite}
            for each in self.grade.findings
        ]
        kind = self.grade.transform_class
        return {
            "level": self.grade.level.value,
            "class": kind.value if kind else None,
            "findings": findings,
            "statesWatermark": self.grade.follows_watermarks,
            "waitsFor": list(self.waits_for),
            "eventTimeTaken": self.event_time if self.is_taken else None,
        }


@dataclass(frozen=True, slots=True)
class TransformGrader:
    """Judges manifests of derivatives, before they become datasets."""

    store: MetadataStore
    engines: EngineHost

    def grade_all(self, snapshots: Sequence[DatasetSnapshot]) -> list[GradedTransform]:
        """Grade every transform among ``snapshots``.

        Raises:
            EngineMissingError: An engine is not installed here; found before any engine is started.
            NotReproducibleError: A query that nobody could repeat, that is none, or that the engine cannot run.
            EngineError: The engine failed.
        """
        derivatives = [each for each in snapshots if each.kind is DatasetKind.DERIVATIVE]
        declared = [(each, event) for each in derivatives for event in each.metadata if isinstance(event, SetTransform)]
        for _, event in declared:
            self.engines.get_engine(self.engines.choose_build(event.transform))
        return [self._grade(snapshot, event) for snapshot, event in declared]

    def _grade(self, snapshot: DatasetSnapshot, event: SetTransform) -> GradedTransform:
        session = self.engines.own_session(self.engines.choose_build(event.transform))
        graded = self.grade_declared(snapshot, event, session)
        found = graded.rejection
        if graded.is_stepwise and found is None and graded.grade is not None:
            attachments = next((each for each in reversed(snapshot.metadata) if isinstance(each, SetAttachments)), None)
            check_meant(self.store, str(snapshot.name), event, attachments, graded.grade)
        if found is not None:
            raise NotReproducibleError(
                f"transform of '{snapshot.name}': {found.expression}", found.reason, found.rewrite
            )
        return graded

    def grade_declared(
        self, snapshot: DatasetSnapshot, declared: SetTransform, session: TransformSession
    ) -> GradedTransform:
        """Grade the transform of a manifest; where it names no event time, and its result has one time, that is taken.

        Raises:
            EngineError: The engine failed.
        """
        name, vocabulary = str(snapshot.name), vocabulary_of(snapshot)
        graded = self.grade(name, declared, vocabulary, session)
        times = () if graded.grade is None else graded.grade.time_columns
        words = [each for each in snapshot.metadata if isinstance(each, SetVocab)]
        if len(times) != 1 or (words and words[-1].event_time_column is not None):
            return graded
        again = self.grade(name, declared, replace(vocabulary, event_time=times[0]), session)
        return graded if again.rejection else replace(again, is_taken=True)

    def grade(
        self, dataset: str, declared: SetTransform, vocabulary: Vocabulary, session: TransformSession
    ) -> GradedTransform:
        """Grade a transform; a rejection is a grade, not an error.

        Args:
            dataset: What it makes, for people.
            declared: Its inputs are named, or known by identity.
            vocabulary: Of its output.
            session: Of its engine.

        Raises:
            EngineError: The engine failed.
        """
        tables = []
        silent = []
        is_waiting = gives_by_watermarks(declared.transform)
        temporal = {each.name for each in declared.transform.temporal_tables or ()}
        for item in declared.inputs:
            record = self.find_input(item.dataset_ref)
            view = None if record is None else load_view(self.store, record.id)
            if record is None or view is None or view.schema is None:
                return GradedTransform(dataset, None, f"input '{item.dataset_ref}' has no columns yet")
            name = item.alias or item.dataset_ref
            tables.append(QueryTable(name=name, vocabulary=view.vocabulary, schema=view.schema))
            if is_waiting and view.watermark is None and (not temporal or name in temporal):
                silent.append(record.name)
        grade = session.check(declared.transform, tables, vocabulary=vocabulary)
        is_stepwise = self.engines.get_engine(self.engines.choose_build(declared.transform)).is_stepwise
        return GradedTransform(
            dataset, grade, is_stepwise=is_stepwise, waits_for=tuple(silent), event_time=vocabulary.event_time
        )

    def find_input(self, reference: str) -> DatasetRecord | None:
        """Find the dataset that an input names, by identity or by name."""
        return find_record(self.store, reference)


def vocabulary_of(snapshot: DatasetSnapshot) -> Vocabulary:
    """Return the names of the system columns that a manifest declares."""
    words = [each for each in snapshot.metadata if isinstance(each, SetVocab)]
    return Vocabulary.of(words[-1]) if words else Vocabulary()


def with_event_time(snapshot: DatasetSnapshot, graded: GradedTransform | None) -> DatasetSnapshot:
    """Return a manifest that declares the event time that was taken for it (GATE-18)."""
    if graded is None or not graded.is_taken:
        return snapshot
    words = [each for each in snapshot.metadata if isinstance(each, SetVocab)]
    declared = replace(words[-1] if words else SetVocab(), event_time_column=graded.event_time)
    others = (each for each in snapshot.metadata if not isinstance(each, SetVocab))
    return replace(snapshot, metadata=(declared, *others))
