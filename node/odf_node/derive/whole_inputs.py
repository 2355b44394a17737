"""The rows of inputs before a step, for queries that read whole inputs.

Which queries do is the engine's to say, from the query alone; a map reads what is new and nothing else.

Source: VIEW-3 and VIEW-9 in ``spec/extensions/maintained-views.md``, WINDOW-3 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from odf_engines.contract import GradeLevel, QueryTable, TransformInput, TransformRequest
from odf_engines.engine import TransformSession
from odf_node.datasets.chains import get_block, load_view
from odf_node.datasets.presence import Presence
from odf_node.ports import MetadataStore, ObjectStore
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, DataSlice, ExecuteTransform
from odf_protocol.transform_plan import PlannedInput


@dataclass(frozen=True, slots=True)
class WholeInputs:
    """Completes requests of steps; what it has read of a chain it keeps, for the next steps of the same dataset."""

    store: MetadataStore
    objects: ObjectStore
    _slices: dict[DatasetId, list[tuple[int, DataSlice]]] = field(default_factory=dict)

    def complete(
        self, request: TransformRequest, planned: Sequence[PlannedInput], session: TransformSession
    ) -> TransformRequest:
        """Add the rows before a step to its request, where the query reads whole inputs.

        Args:
            request: From ``StepBuilder.build``.
            planned: What it was built from.
            session: Of the engine that will run it.

        Raises:
            ObjectsAbsentError: A file of an input is not here.
            EngineError: The engine failed.
        """
        tables = [
            QueryTable(name=each.alias, vocabulary=each.vocabulary, schema=each.schema) for each in request.inputs
        ]
        grade = session.check(request.transform, tables, vocabulary=request.vocabulary)
        if grade.level is GradeLevel.REFUSED or grade.transform_class is None:
            return request  # the engine says why when it is asked to run it
        if not grade.transform_class.reads_whole_inputs:
            return request
        return replace(request, inputs=tuple(map(self._complete, request.inputs, planned)))

    def _complete(self, each: TransformInput, planned: PlannedInput) -> TransformInput:
        recorded = planned.recorded
        if recorded.prev_block_hash is None:
            return each
        last = get_block(self.store, recorded.dataset_id, recorded.prev_block_hash).sequence_number
        earlier = [data.physical_hash for number, data in self._list_slices(recorded.dataset_id) if number <= last]
        record = self.store.find_dataset(recorded.dataset_id)
        assert record is not None
        Presence(self.store, self.objects).require(record, earlier)
        return replace(
            each,
            prev_offset=recorded.prev_offset,
            earlier_slices=tuple(map(self.objects.get_path, earlier)),
            prev_watermark=load_view(self.store, recorded.dataset_id, upto=last).watermark,
        )

    def _list_slices(self, dataset_id: DatasetId) -> list[tuple[int, DataSlice]]:
        if dataset_id not in self._slices:
            found = self._slices[dataset_id] = []
            for stored in self.store.iter_blocks_with_rows(dataset_id):
                event = decode_block(stored.raw, expected_hash=stored.hash).event
                if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
                    found.append((stored.sequence_number, event.new_data))
        return self._slices[dataset_id]
