"""Blocks of a chain as a batch of the Smart Transfer Protocol, and the plan of this batch (SMART-8, SMART-9)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from odf_node.records.datasets import StoredBlock
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.exchange.block_outlines import read_outline
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_smart.conversations import object_file_of
from odf_smart_protocol.batches import encode_batch
from odf_smart_protocol.messages import BlocksBatch, ObjectFile, TransferPlan

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


def plan_batch(store: MetadataStore, dataset_id: DatasetId, *, after: int, upto: int) -> PlannedBatch:
    """Pack the blocks above ``after`` and not above ``upto``, at least one, or as many as one message holds.

    Raises:
        BlockNotFoundError, DatasetNotFoundError: As ``MetadataStore.iter_blocks``.
    """
    found = _Sums()
    payload, count = encode_batch(found.count(store.iter_blocks(dataset_id, after=after, upto=upto)))
    found.keep(count)
    plan = TransferPlan(
        num_blocks=count,
        num_objects=found.objects_count,
        num_records=found.records,
        bytes_in_raw_blocks=found.block_bytes,
        bytes_in_raw_objects=found.object_bytes,
    )
    return PlannedBatch(plan, BlocksBatch.of(payload, count), tuple(found.objects.values()), found.head)


class _Sums:
    """Sums over blocks as they are read; whether the last one that was read is in the batch is known at the end."""

    def __init__(self) -> None:
        self.objects_count = self.records = self.block_bytes = self.object_bytes = 0
        self.objects: dict[Multihash, ObjectFile] = {}
        """Two blocks may name equal bytes."""
        self._kept = 0
        self._last: _Block | None = None
        self._before: Head | None = None

    @property
    def head(self) -> Head:
        """The last block of the batch."""
        assert self._before is not None
        return self._before

    def count(self, blocks: Iterator[StoredBlock]) -> Iterator[tuple[Multihash, bytes]]:
        """Pass the blocks on, adding each up once the next one is asked for."""
        for stored in blocks:
            self._add()
            block = read_outline(stored.raw)
            objects = tuple(object_file_of(item) for item in block.wanted)
            self._last = _Block(Head(stored.sequence_number, stored.hash), len(stored.raw), block.rows, objects)
            yield stored.hash, stored.raw

    def keep(self, count: int) -> None:
        """Take the last one in, if it is one of the first ``count``."""
        if self._kept < count:
            self._add()

    def _add(self) -> None:
        if self._last is None:
            return
        block, self._last = self._last, None
        self._kept += 1
        self._before = block.head
        self.records += block.records
        self.block_bytes += block.size_bytes
        self.objects_count += len(block.objects)
        self.object_bytes += sum(item.size for item in block.objects)
        self.objects.update((item.hash, item) for item in block.objects)


@dataclass(frozen=True, slots=True)
class _Block:
    head: Head
    size_bytes: int
    records: int = 0
    objects: tuple[ObjectFile, ...] = field(default=())
