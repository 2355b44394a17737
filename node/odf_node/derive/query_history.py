"""Which query of a derivative made which rows, out of which rows of its inputs (PLAN-10).

Read from few blocks, however long the chain is: the definitions, and of each query the first and the last step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from odf_node.ports.chains import ChainStore
from odf_node.ports.datasets import BlockRole
from odf_protocol.block import Block, decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import ExecuteTransform, SetTransform


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by their numbers, both included; there is at least one."""

    first: int
    last: int

    @classmethod
    def after(cls, before: int | None, last: int | None) -> "Rows | None":
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
    made: Rows | None
    read: tuple[tuple[DatasetId, Rows | None], ...]


def list_queries(chains: ChainStore, dataset_id: DatasetId) -> list[QuerySpan]:
    """List the queries of a derivative, oldest first; the last one is in force."""
    declared: list[tuple[int, SetTransform]] = []
    for stored in chains.iter_landmarks(dataset_id):
        event = decode_block(stored.raw, expected_hash=stored.hash).event
        if isinstance(event, SetTransform):
            declared.append((stored.sequence_number, event))
    ends = [*(number - 1 for number, _ in declared[1:]), chains.get_head(dataset_id).sequence_number]
    return [
        _span(chains, dataset_id, number, event, last) for (number, event), last in zip(declared, ends, strict=True)
    ]


def _span(chains: ChainStore, dataset_id: DatasetId, number: int, declared: SetTransform, last: int) -> QuerySpan:
    first_step = _find_step(_iter_blocks(chains, dataset_id, range(number + 1, last + 1)))
    last_step = _find_step(_iter_blocks(chains, dataset_id, range(last, number, -1)))
    if first_step is None or last_step is None:
        ids = [DatasetId.parse(item.dataset_ref) for item in declared.inputs]
        return QuerySpan(number, declared, 0, None, tuple((each, None) for each in ids))
    steps = sum(
        chains.count_blocks(dataset_id, role, first=number, last=last)
        for role in BlockRole
        if role is not BlockRole.DEFINITION
    )
    made = Rows.after(
        first_step.prev_offset, last_step.new_data.offset_interval.end if last_step.new_data else last_step.prev_offset
    )
    read = tuple(
        (
            begin.dataset_id,
            Rows.after(begin.prev_offset, end.prev_offset if end.new_offset is None else end.new_offset),
        )
        for begin, end in zip(first_step.query_inputs, last_step.query_inputs, strict=True)
    )
    return QuerySpan(number, declared, steps, made, read)


def _iter_blocks(chains: ChainStore, dataset_id: DatasetId, numbers: range) -> Iterator[Block]:
    for number in numbers:
        stored = chains.find_block_by_number(dataset_id, number)
        if stored is not None:
            yield decode_block(stored.raw, expected_hash=stored.hash)


def _find_step(blocks: Iterator[Block]) -> ExecuteTransform | None:
    return next((block.event for block in blocks if isinstance(block.event, ExecuteTransform)), None)
