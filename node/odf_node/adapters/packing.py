"""What of a dataset goes out: its blocks, ready to be packed, and its objects.

Content addresses are not permissions. Source: clauses EX-81 and EX-87 in ``spec/extensions/exchange.md``.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO

from odf_node.byte_rate import ByteRate
from odf_node.ports.objects import StoredObjects
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.pushes import SentObjects
from odf_node.records.errors import ObjectNotFoundError
from odf_node.store import MetadataStore
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.limits import MAX_PACK_BLOCKS
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.multihash import Multihash


def iter_packed(
    store: MetadataStore, dataset_id: DatasetId, after: int, upto: int, *, with_records: bool
) -> Iterator[PackedBlock]:
    """Yield the blocks above ``after`` and not above ``upto`` with signature and, if wanted, step record.

    No more than one pack is filled from it: records behind the last block that a pack can hold are left out.
    """
    if after >= upto:
        return
    last = min(upto, after + MAX_PACK_BLOCKS)
    records = store.iter_step_records(dataset_id, after=after, upto=last) if with_records else iter(())
    nothing = (upto + 1, b"")
    number, record = next(records, nothing)
    for block in store.iter_blocks(dataset_id, after=after, upto=upto):
        if number == block.sequence_number:
            yield PackedBlock(block.raw, block.signature, record)
            number, record = next(records, nothing)
        else:
            yield PackedBlock(block.raw, block.signature)


async def iter_chunks(
    objects: SentObjects, object_hash: Multihash, rate: ByteRate, tell: OnBytes, *, start: int = 0, end: int
) -> AsyncIterator[bytes]:
    """Yield the bytes of an object from ``start`` to ``end`` as fast as the rate allows; ``tell`` hears of each piece.

    An object that is shorter by now ends early.
    """
    file = await asyncio.to_thread(objects.open, object_hash)
    with file:
        file.seek(start)
        left_bytes = end - start
        while left_bytes > 0 and (chunk := await finish_in_thread(lambda: file.read(rate.chunk_bytes))):
            await rate.wait()
            rate.take(len(chunk))
            yield chunk
            left_bytes -= len(chunk)
            tell(len(chunk))


class DatasetObjects:
    """``SentObjects``: what the dataset has; of what else is here nothing is told, not even that it is."""

    def __init__(self, objects: StoredObjects, store: MetadataStore, dataset_id: DatasetId) -> None:
        self._objects = objects
        self._store = store
        self._dataset_id = dataset_id

    def get_size(self, object_hash: Multihash) -> int:
        self._require_had(object_hash)
        return self._objects.get_size(object_hash)

    def open(self, object_hash: Multihash) -> BinaryIO:
        self._require_had(object_hash)
        return self._objects.open(object_hash)

    def _require_had(self, object_hash: Multihash) -> None:
        if not self._store.names_object(self._dataset_id, object_hash):
            raise RejectedError(
                "EX-87 objects-of-the-push", expected="a receiver that asks for what is pushed to it", found=object_hash
            )
        if not self._store.has_dataset_object(self._dataset_id, object_hash):
            raise ObjectNotFoundError(object_hash)
