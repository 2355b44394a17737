"""The request of a step of a derivative: planned from what its inputs gained, or as a block recorded it.

Clauses: PLAN-1 to PLAN-15 in ``spec/transform.md``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from odf_engines.contract import Limits, TransformInput, TransformRequest
from odf_engines.contract import Watermark as EngineWatermark
from odf_node.datasets.chains import blocks_between, get_block, last_offset_at, load_view
from odf_node.datasets.presence import Presence
from odf_node.derive.holding import InputHold
from odf_node.errors import UsageError
from odf_node.ports.objects import StoredObjects
from odf_node.records.errors import DatasetNotFoundError
from odf_node.store import MetadataStore
from odf_protocol.chain.state import InputProgress
from odf_protocol.chain.stored_state import decode_state
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import ExecuteTransformInput, SetTransform
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import (
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
class StepBuilder:
    """Turns plans into requests, with inputs read from this node's own accepted copies (ACCEPT-7).

    ``holds`` says up to where inputs are read that something holds back (PLAN-21).
    """

    store: MetadataStore
    objects: StoredObjects
    holds: Mapping[DatasetId, InputHold] = field(default_factory=dict)

    @property
    def ends(self) -> Mapping[DatasetId, int | None]:
        """The numbers of the blocks behind which inputs are held back; None: all of one is."""
        return {dataset_id: hold.upto for dataset_id, hold in self.holds.items()}

    def plan_next(self, view: DatasetView, bound: StepBound | None) -> tuple[PlannedInput, ...]:
        """Plan what the inputs gained since the newest step that read them, up to a bound; None: all of it.

        Raises:
            UsageError: The dataset declares no transform.
            DatasetNotFoundError: An input is not held here.
        """
        if view.transform is None:
            raise UsageError(f"dataset {view.dataset_id} declares no transform")
        _head, state = self.store.get_chain_state(view.dataset_id)
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
            if self.store.find_dataset(dataset_id) is None:
                raise DatasetNotFoundError(dataset_id)
            previous = taken.get(dataset_id)
            first = None if previous is None else previous.block_hash
            end_block = self._readable_end(dataset_id, first)
            gained = blocks_between(self.store, dataset_id, first, end_block) if end_block != first else ()
            end = find_step_end(previous, gained, bound)
            planned.append(self.plan_recorded(next_interval(dataset_id, previous, end)))
        return tuple(planned)

    def reaches_heads(self, planned: Iterable[PlannedInput]) -> bool:
        """Say whether inputs are read as far as they may be, which is to their ends where nothing holds them back."""
        return all(
            (item.recorded.new_block_hash or item.recorded.prev_block_hash)
            == self._readable_end(item.recorded.dataset_id, item.recorded.prev_block_hash)
            for item in planned
        )

    def _readable_end(self, dataset_id: DatasetId, taken: Multihash | None) -> Multihash | None:
        """Say up to which block an input is read of which steps took the blocks up to ``taken`` (PLAN-21)."""
        hold = self.holds.get(dataset_id)
        if hold is None:
            return self.store.get_head(dataset_id).hash
        last = None if hold.upto is None else self.store.find_block_by_number(dataset_id, hold.upto)
        if last is None:
            return taken
        is_taken = (
            taken is not None and get_block(self.store, dataset_id, taken).sequence_number >= last.sequence_number
        )
        return taken if is_taken else last.hash

    def plan_recorded(self, recorded: ExecuteTransformInput) -> PlannedInput:
        """Collect what a recorded interval holds in the copy held here.

        Raises:
            BlockNotFoundError: The copy lacks a block that the step names.
            RejectedError: PLAN-5.
        """
        self._check_start(recorded)
        blocks = blocks_between(self.store, recorded.dataset_id, recorded.prev_block_hash, recorded.new_block_hash)
        return plan_input(recorded, blocks)

    def _check_start(self, recorded: ExecuteTransformInput) -> None:
        """Check that an interval starts where it says, so that none of the input's rows is left out (PLAN-5)."""
        if recorded.prev_block_hash is None:
            last_offset = None
        else:
            first = get_block(self.store, recorded.dataset_id, recorded.prev_block_hash).sequence_number
            last_offset = last_offset_at(self.store, recorded.dataset_id, first)
            if recorded.new_block_hash is not None:
                last = get_block(self.store, recorded.dataset_id, recorded.new_block_hash).sequence_number
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
            declared=view.schema,
            limits=limits,
        )
        return Step(transform.transform.engine, transform, tuple(inputs), request)

    def _engine_input(self, planned: PlannedInput, alias: str) -> TransformInput:
        last = planned.recorded.new_block_hash or planned.recorded.prev_block_hash
        upto = None
        if last is not None:
            stored = self.store.find_block(planned.recorded.dataset_id, last)
            upto = stored.sequence_number if stored else None
        record = self.store.find_dataset(planned.recorded.dataset_id)
        if record is not None:
            Presence(self.store, self.objects).require_checked(record, (item.physical_hash for item in planned.slices))
        source = load_view(self.store, planned.recorded.dataset_id, upto=upto)
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
