"""Grade a transform before a dataset is made of it (ENGINE-7, PLAN-8).

The grade is the engine's, on the plan that it makes of the query; for that it has to know the columns of the inputs. A
derivative of datasets that have none yet is graded with its first step, before anything of it is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from odf_engines.contract import Grade, GradeLevel, QueryTable, TransformClass
from odf_engines.errors import NotReplayableError
from odf_node.datasets.chains import load_view
from odf_node.engines.sessions import EngineHost
from odf_node.ports import DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import DatasetKind, SetTransform, SetVocab
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.vocabulary import Vocabulary

_MEANINGS = {
    TransformClass.MAP: "each row follows from one row of its input",
    TransformClass.MAINTAINED: "corrected whenever its inputs change; each step computes the query over all of them",
    TransformClass.FINAL: "each window is given once, when a watermark closes it; rows that come later are left out",
}
"""What a class means for who reads the dataset, and what it costs (VIEW-1)."""


@dataclass(frozen=True, slots=True)
class GradedTransform:
    """A transform and its grade; where there is none yet, ``reason`` says why."""

    dataset: str
    grade: Grade | None
    reason: str = ""

    def describe(self) -> list[str]:
        """Say it in lines for people."""
        if self.grade is None:
            return [f"{self.dataset}: whether others can repeat its query shows at its first step: {self.reason}"]
        kind = self.grade.transform_class
        lines = [f"{self.dataset}: {self.grade.level.value}{f', {kind.value}: {_MEANINGS[kind]}' if kind else ''}"]
        lines += [f"  {each.expression}: {each.reason}" for each in self.grade.findings]
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
        return {"level": self.grade.level.value, "class": kind.value if kind else None, "findings": findings}


@dataclass(frozen=True, slots=True)
class TransformGrader:
    """Judges manifests of derivatives, before they become datasets."""

    chains: ChainStore
    engines: EngineHost

    def grade_all(self, snapshots: Sequence[DatasetSnapshot]) -> list[GradedTransform]:
        """Grade every transform among ``snapshots``.

        Raises:
            EngineMissingError: An engine is not installed here; found before any engine is started.
            NotReplayableError: A query that nobody could repeat, that is none, or that the engine cannot run.
            EngineError: The engine failed.
        """
        derivatives = [each for each in snapshots if each.kind is DatasetKind.DERIVATIVE]
        declared = [(each, event) for each in derivatives for event in each.metadata if isinstance(event, SetTransform)]
        for _, event in declared:
            self.engines.get_engine(event.transform.engine)
        return [self._grade(snapshot, event) for snapshot, event in declared]

    def _grade(self, snapshot: DatasetSnapshot, event: SetTransform) -> GradedTransform:
        tables = []
        for item in event.inputs:
            record = self._find(item.dataset_ref)
            view = None if record is None else load_view(self.chains, record.id)
            if view is None or view.schema is None:
                return GradedTransform(str(snapshot.name), None, f"input '{item.dataset_ref}' has no columns yet")
            name = item.alias or item.dataset_ref
            tables.append(QueryTable(name=name, vocabulary=view.vocabulary, schema=view.schema))
        words = [each for each in snapshot.metadata if isinstance(each, SetVocab)]
        vocabulary = Vocabulary.of(words[-1]) if words else Vocabulary()
        session = self.engines.own_session(event.transform.engine)
        grade = session.check(event.transform, tables, vocabulary=vocabulary)
        found = grade.findings[0] if grade.level is GradeLevel.REFUSED else grade.obstacle
        if found is not None:
            raise NotReplayableError(f"transform of '{snapshot.name}': {found.expression}", found.reason, found.rewrite)
        return GradedTransform(str(snapshot.name), grade)

    def _find(self, reference: str) -> DatasetRecord | None:
        try:
            return self.chains.find_dataset(DatasetId.parse(reference))
        except MalformedError:
            wanted = reference.lower()
            return next((each for each in self.chains.list_datasets() if each.name.lower() == wanted), None)
