"""Blocks of a chain as a batch of the Smart Transfer Protocol, and the plan of this batch (SMART-8, SMART-9)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from odf_node.adapters.packing import ServedStore
from odf_node.adapters.smart_connection import object_file_of
from odf_node.exchange.wanted import iter_wanted
from odf_node.ports.datasets import Head
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import Multihash
from odf_protocol.smart_transfer.batches import encode_batch
from odf_protocol.smart_transfer.messages import BlocksBatch, ObjectFile, TransferPlan

EMPTY_PLAN: Final = TransferPlan(
    num_blocks=0, num_objects=0, num_records=0, bytes_in_raw_blocks=0, bytes_in_raw_objects=0
)


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch that ends in ``head``, and the objects that its blocks name."""

    plan: TransferPlan
    batch: BlocksBatch
    objects: tuple[ObjectFile, ...]
    head: Head


def plan_batch(store: ServedStore, dataset_id: DatasetId, *, after: int, upto: int) -> PlannedBatch:
    """Pack the blocks above ``after`` and not above ``upto``, at least one, or as many as one message holds.

    Raises:
        BlockNotFoundError, DatasetNotFoundError: As ``MetadataStore.iter_blocks``.
    """
    looked_at: list[_Block] = []

    def read() -> Iterator[tuple[Multihash, bytes]]:
        for stored in store.iter_blocks(dataset_id, after=after, upto=upto):
            looked_at.append(_Block.read(stored.sequence_number, stored.hash, stored.raw))
            yield stored.hash, stored.raw

    payload, count = encode_batch(read())
    sent = looked_at[:count]  # one more may have been looked at and found not to fit
    # Two blocks may name equal bytes.
    objects = {item.hash: item for block in sent for item in block.objects}
    plan = TransferPlan(
        num_blocks=count,
        num_objects=sum(len(block.objects) for block in sent),
        num_records=sum(block.records for block in sent),
        bytes_in_raw_blocks=sum(block.size_bytes for block in sent),
        bytes_in_raw_objects=sum(item.size for block in sent for item in block.objects),
    )
    return PlannedBatch(plan, BlocksBatch.of(payload, count), tuple(objects.values()), sent[-1].head)


@dataclass(frozen=True, slots=True)
class _Block:
    head: Head
    size_bytes: int
    records: int = 0
    objects: tuple[ObjectFile, ...] = field(default=())

    @classmethod
    def read(cls, sequence_number: int, block_hash: Multihash, raw: bytes) -> "_Block":
        head = Head(sequence_number, block_hash)
        event = decode_block(raw, expected_hash=None).event
        if not isinstance(event, AddData | ExecuteTransform):
            return cls(head, len(raw))
        interval = None if event.new_data is None else event.new_data.offset_interval
        records = 0 if interval is None else interval.end - interval.start + 1
        return cls(head, len(raw), records, tuple(object_file_of(item) for item in iter_wanted(event)))
