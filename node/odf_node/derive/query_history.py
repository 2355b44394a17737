"""Which query of a derivative made which rows, out of which rows of its inputs (PLAN-10).

Read from few blocks, however long the chain is: the definitions, and of each query the first and the last step.
"""

import sys
from dataclasses import dataclass
from typing import Final

from odf_node.records.datasets import BlockRole
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import ExecuteTransform, SetTransform

_NEAR: Final = 4
"""Blocks that are looked at one by one before steps are counted: there is the step of an ordinary chain.  # guess"""


@dataclass(frozen=True, slots=True)
class HistoryRows:
    """HistoryRows by their numbers, both included; there is at least one."""

    first: int
    last: int

    @classmethod
    def after(cls, before: int | None, last: int | None) -> "HistoryRows | None":
        """Give the rows behind ``before`` up to ``last``; None stands for before the first one."""
        first = 0 if before is None else before + 1
        return None if last is None or last < first else cls(first, last)

    def __str__(self) -> str:
        return f"rows {self.first:,} to {self.last:,}" if self.last > self.first else f"row {self.first:,}"


@dataclass(frozen=True, slots=True)
class QuerySpan:
    """One query: the block that declares it, and what its steps made, None and 0 where it made nothing.

    ``read`` is by input, in the order of the query.
    """

    sequence_number: int
    declared: SetTransform
    steps: int
    made: HistoryRows | None
    read: tuple[tuple[DatasetId, HistoryRows | None], ...]


def list_queries(store: MetadataStore, dataset_id: DatasetId, *, most: int = sys.maxsize) -> list[QuerySpan]:
    """List the newest queries of a derivative, oldest first; the last one is in force."""
    declared: list[tuple[int, SetTransform]] = []
    for stored in store.iter_landmarks(dataset_id):
        event = decode_block(stored.raw, expected_hash=stored.hash).event
        if isinstance(event, SetTransform):
            declared.append((stored.sequence_number, event))
    ends = [*(number - 1 for number, _ in declared[1:]), store.get_head(dataset_id).sequence_number]
    spans = [*zip(declared, ends, strict=True)][-most:]
    return [_span(store, dataset_id, number, event, last) for (number, event), last in spans]


def _span(store: MetadataStore, dataset_id: DatasetId, number: int, declared: SetTransform, last: int) -> QuerySpan:
    steps = _count_steps(store, dataset_id, number, last)
    first_step = last_step = None
    if steps:
        first_step = _find_step(store, dataset_id, number + 1, last)
        last_step = _find_step(store, dataset_id, number + 1, last, newest=True)
    if first_step is None or last_step is None:
        ids = [DatasetId.parse(item.dataset_ref) for item in declared.inputs]
        return QuerySpan(number, declared, 0, None, tuple((each, None) for each in ids))
    made = HistoryRows.after(
        first_step.prev_offset, last_step.new_data.offset_interval.end if last_step.new_data else last_step.prev_offset
    )
    read = tuple(
        (
            begin.dataset_id,
            HistoryRows.after(begin.prev_offset, end.prev_offset if end.new_offset is None else end.new_offset),
        )
        for begin, end in zip(first_step.query_inputs, last_step.query_inputs, strict=True)
    )
    return QuerySpan(number, declared, steps, made, read)


def _count_steps(store: MetadataStore, dataset_id: DatasetId, first: int, last: int) -> int:
    """Count the blocks of data, which are steps in a derivative (CHAIN-10)."""
    return sum(
        store.count_blocks(dataset_id, role, first=first, last=last)
        for role in BlockRole
        if role > BlockRole.DEFINITION
    )


def _find_step(
    store: MetadataStore, dataset_id: DatasetId, first: int, last: int, *, newest: bool = False
) -> ExecuteTransform | None:
    """Find the first or the newest step of a range; others may put any number of other blocks between."""
    near = range(last, first - 1, -1)[:_NEAR] if newest else range(first, last + 1)[:_NEAR]
    for number in near:
        if (step := _read_step(store, dataset_id, number)) is not None:
            return step
    while first < last:
        middle = (first + last) // 2
        if newest:
            is_behind = _count_steps(store, dataset_id, middle + 1, last) > 0
        else:
            is_behind = _count_steps(store, dataset_id, first, middle) == 0
        first, last = (middle + 1, last) if is_behind else (first, middle)
    return _read_step(store, dataset_id, first)


def _read_step(store: MetadataStore, dataset_id: DatasetId, number: int) -> ExecuteTransform | None:
    stored = store.find_block_by_number(dataset_id, number)
    event = None if stored is None else decode_block(stored.raw, expected_hash=stored.hash).event
    return event if isinstance(event, ExecuteTransform) else None
