"""The rows of inputs before a step, for queries that read whole inputs.

Which queries do is the engine's to say, from the query alone; a map reads what is new and nothing else.

Source: VIEW-3 and VIEW-9 in ``spec/extensions/maintained-views.md``, WINDOW-3 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from odf_engines.contract import GradeLevel, QueryTable, TransformClass, TransformInput, TransformRequest, Watermark
from odf_engines.engine import TransformSession
from odf_node.datasets.chains import get_block, iter_decoded, load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.derive.earlier_rows import EarlierRows, InputRows, needed_watermarks
from odf_node.derive.step_measurements import CompletedRequest, StepClock
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import AddData, DataSlice, ExecuteTransform, ExecuteTransformInput, SetVocab
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.step_metrics import StateSize
from odf_protocol.transform_plan import PlannedInput
from odf_protocol.vocabulary import Vocabulary


@dataclass(slots=True)
class _History:
    """What the blocks of an input up to ``upto`` say, oldest first, by sequence number."""

    upto: int = -1
    newest: Multihash | None = None
    slices: list[tuple[int, DataSlice]] = field(default_factory=list)
    watermarks: list[tuple[int, Watermark]] = field(default_factory=list)
    vocabularies: list[tuple[int, Vocabulary]] = field(default_factory=list)
    last_offset: int | None = None

    def copy(self) -> "_History":
        """Return one that can grow by itself."""
        return replace(self, slices=[*self.slices], watermarks=[*self.watermarks], vocabularies=[*self.vocabularies])


_MAX_KEPT: Final = 32  # guess: inputs of the derivatives that a daemon keeps up to date
_MAX_BLOCKS: Final = 20_000  # guess: some 20 MB
_kept: dict[DatasetId, _History] = {}
"""Of one process, so that a step does not decode the whole chain of an input. A block's hash names all before it."""


@dataclass(frozen=True, slots=True)
class WholeInputs:
    """Completes requests of steps; what it has read of a chain it keeps, for the next steps of the same dataset."""

    store: MetadataStore
    rows: EngineRows
    _read: dict[DatasetId, _History] = field(default_factory=dict)

    def complete(
        self,
        request: TransformRequest,
        planned: Sequence[PlannedInput],
        session: TransformSession,
        *,
        is_redefined: bool,
        clock: StepClock | None = None,
    ) -> CompletedRequest:
        """Add the rows before a step to its request, where the query reads whole inputs.

        Args:
            request: From ``StepBuilder.build``.
            planned: What it was built from.
            session: Of the engine that will run it.
            is_redefined: Another query was declared before the one in force, and made a step.
            clock: Measures what it takes.

        Raises:
            RejectedError: VIEW-11, VIEW-12.
            ObjectsAbsentError: A file of an input is not here.
            EngineError: The engine failed.
        """
        tables = [
            QueryTable(name=each.alias, vocabulary=each.vocabulary, schema=each.schema) for each in request.inputs
        ]
        clock = clock or StepClock()
        with clock.measuring("starting"):
            grade = session.check(request.transform, tables, vocabulary=request.vocabulary)
        if request.declared is None and grade.schema is not None:
            # What a dataset says of its columns follows from its query, not from what its first step reads (FUSION-14).
            request = replace(request, declared=data_schema_of(grade.schema))
        if grade.level is GradeLevel.REJECTED or grade.transform_class is None:
            return CompletedRequest(request, grade=grade)  # the engine says why it rejects when it is asked to run it
        if not grade.transform_class.reads_whole_inputs:
            return CompletedRequest(request)
        # A join as of a time is final, and corrects what it said of rows that are corrected.
        has_corrections = grade.transform_class is TransformClass.MAINTAINED or request.transform.temporal_tables
        if has_corrections and is_redefined:
            raise RejectedError(
                "VIEW-11 maintained-view-is-declared-once",
                expected="one query for all steps, as a step says what changed since the step before",
                found="another query made steps before; make a dataset of its own for this one",
            )
        # Which rows came in time is asked of a whole input only where rows can come too late for good.
        is_final = grade.transform_class is TransformClass.FINAL or bool(request.transform.temporal_tables)
        with clock.measuring("state"):
            stated = [self._add_watermarks(*each) for each in zip(request.inputs, planned, strict=True)]
            chooser = EarlierRows(
                grade.lookbacks,
                {each.alias: each.prev_watermark for each in stated},
                {each.alias: self._find_rows(each, read) for each, read in zip(stated, planned, strict=True)},
            )
            completed = [
                self._add_rows(each, read, chooser, is_final=is_final)
                for each, read in zip(stated, planned, strict=True)
            ]
            return CompletedRequest(
                replace(request, inputs=tuple(completed)),
                self._measure(planned, lambda read: read.prev_block_hash),
                self._measure(planned, lambda read: read.new_block_hash or read.prev_block_hash),
            )

    def _measure(
        self, planned: Sequence[PlannedInput], newest: Callable[[ExecuteTransformInput], Multihash | None]
    ) -> StateSize:
        """Add up the rows of inputs up to a block of each, and the sizes of their files as blocks state them."""
        rows = size_bytes = 0
        for recorded in (each.recorded for each in planned):
            if (block_hash := newest(recorded)) is not None:
                last = self._number_of(recorded.dataset_id, block_hash)
                found = [data for number, data in self._read[recorded.dataset_id].slices if number <= last]
                rows += sum(data.offset_interval.row_count for data in found)
                size_bytes += sum(data.size for data in found)
        return StateSize(rows=rows, size_bytes=size_bytes)

    def _find_rows(self, each: TransformInput, planned: PlannedInput) -> InputRows:
        """Find the slices of an input, all of whose rows before the step must be here."""
        recorded, name = planned.recorded, each.vocabulary.event_time
        earlier: list[DataSlice] = []
        if recorded.prev_block_hash is not None:
            last = self._number_of(recorded.dataset_id, recorded.prev_block_hash)
            earlier = [data for number, data in self._read[recorded.dataset_id].slices if number <= last]
            record = self.store.find_dataset(recorded.dataset_id)
            assert record is not None
            presence = Presence(self.store, self.rows.objects)
            presence.require_checked(record, (data.physical_hash for data in earlier))
        dataset_id = recorded.dataset_id
        return InputRows(
            earlier,
            planned.slices,
            each.earlier_watermarks,
            lambda slices: self.rows.get_event_times(dataset_id, slices, name),
            lambda slices, beside: self.rows.read_times_beside(dataset_id, slices, name, beside),
            lambda slices, key: self.rows.get_newest(dataset_id, slices, name, key, each.vocabulary.op),
        )

    def _add_watermarks(self, each: TransformInput, planned: PlannedInput) -> TransformInput:
        recorded = planned.recorded
        newest = recorded.new_block_hash or recorded.prev_block_hash
        if newest is None:
            return each
        end = self._number_of(recorded.dataset_id, newest)
        history = self._read_history(recorded.dataset_id, end)
        _check_vocabulary(each, history, upto=end)
        if recorded.prev_block_hash is None:
            return each
        last = self._number_of(recorded.dataset_id, recorded.prev_block_hash)
        stated = tuple(mark for number, mark in history.watermarks if number <= last)
        return replace(
            each,
            prev_offset=recorded.prev_offset,
            prev_schema=load_view(self.store, recorded.dataset_id, upto=last).schema,
            # The highest, not the newest: chains of others may let it fall (CHAIN-24), and no window closes twice.
            prev_watermark=max((mark.event_time for mark in stated), default=None),
            earlier_watermarks=stated,
        )

    def _add_rows(
        self, each: TransformInput, planned: PlannedInput, chooser: EarlierRows, *, is_final: bool
    ) -> TransformInput:
        if planned.recorded.prev_block_hash is None:
            return each
        earlier = chooser.choose(each.alias)
        return replace(
            each,
            earlier_slices=self.rows.get_paths(planned.recorded.dataset_id, earlier, each.schema),
            earlier_intervals=tuple(data.offset_interval for data in earlier),
            earlier_watermarks=(needed_watermarks(each.earlier_watermarks, earlier) if is_final else ()),
            earlier_since_us=chooser.get_since_us(each.alias),
        )

    def _number_of(self, dataset_id: DatasetId, block_hash: Multihash) -> int:
        return get_block(self.store, dataset_id, block_hash).sequence_number

    def _read_history(self, dataset_id: DatasetId, upto: int) -> _History:
        history = self._read.get(dataset_id)
        if history is None:
            history = self._read[dataset_id] = self._take_kept(dataset_id, upto)
        if history.upto < upto:
            for block in iter_decoded(self.store, dataset_id, after=history.upto, upto=upto):
                history.newest = block.hash
                if isinstance(block.event, SetVocab):
                    history.vocabularies.append((block.sequence_number, Vocabulary.of(block.event)))
                if not isinstance(block.event, AddData | ExecuteTransform):
                    continue
                if block.event.new_data is not None:
                    history.slices.append((block.sequence_number, block.event.new_data))
                    history.last_offset = block.event.new_data.offset_interval.end
                if (event_time := block.event.new_watermark) is not None:
                    mark = Watermark(
                        system_time=block.system_time, event_time=event_time, last_offset=history.last_offset
                    )
                    history.watermarks.append((block.sequence_number, mark))
            history.upto = upto
            if upto <= _MAX_BLOCKS:
                _kept.pop(dataset_id, None)
                _kept[dataset_id] = history.copy()
                for unused in tuple(_kept)[:-_MAX_KEPT]:
                    _kept.pop(unused, None)
        return history

    def _take_kept(self, dataset_id: DatasetId, upto: int) -> _History:
        """Return what was read of a chain before, where it goes on from there; else nothing."""
        kept = _kept.get(dataset_id)
        if kept is not None and kept.upto <= upto:
            stored = self.store.find_block_by_number(dataset_id, kept.upto)
            if stored is not None and stored.hash == kept.newest:
                return kept.copy()
        return _History()


def _check_vocabulary(each: TransformInput, history: _History, *, upto: int) -> None:
    """Check that all rows of an input are described by one vocabulary: which rows are taken rests on it (VIEW-12).

    Raises:
        RejectedError: It changed after the first rows.
    """
    if not history.slices:
        return
    first, _data = history.slices[0]
    before = [vocabulary for number, vocabulary in history.vocabularies if number < first][-1:] or [Vocabulary()]
    for number, vocabulary in history.vocabularies:
        if first < number <= upto and vocabulary != before[0]:
            raise RejectedError(
                f"VIEW-12 rows-of-an-input-have-one-vocabulary (input {each.dataset_id})",
                expected="the names of system columns that its first rows have",
                found=f"other names since its block {number}; only a map can read it",
            )
