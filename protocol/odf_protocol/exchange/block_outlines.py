"""What a carrier of blocks needs to know of each: its number, its link, the objects it names. Rules are for others."""

from collections.abc import Iterator
from dataclasses import dataclass

from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, Event, ExecuteTransform, Seed
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class WantedObject:
    """An object as its block names it."""

    kind: ObjectKind
    hash: Multihash
    size_bytes: int


def iter_wanted(event: Event) -> Iterator[WantedObject]:
    """Yield the objects that the event adds: its slice, then its checkpoint."""
    if not isinstance(event, AddData | ExecuteTransform):
        return
    if event.new_data is not None:
        yield WantedObject(ObjectKind.DATA, event.new_data.physical_hash, event.new_data.size)
    if event.new_checkpoint is not None:
        yield WantedObject(ObjectKind.CHECKPOINT, event.new_checkpoint.physical_hash, event.new_checkpoint.size)


@dataclass(frozen=True, slots=True)
class BlockOutline:
    """A block in the eyes of whoever carries it; ``seed_of`` is set in a Seed, ``rows`` counts rows that are added."""

    hash: Multihash
    sequence_number: int
    prev_block_hash: Multihash | None
    wanted: tuple[WantedObject, ...] = ()
    rows: int = 0
    seed_of: DatasetId | None = None


def read_outline(raw: bytes) -> BlockOutline:
    """Read one block.

    Args:
        raw: Its bytes; untrusted.

    Raises:
        MalformedError, UnsupportedError: The bytes are no block of a known version.
    """
    block = decode_block(raw, expected_hash=None)
    event, rows = block.event, 0
    if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
        rows = event.new_data.offset_interval.row_count
    return BlockOutline(
        block.hash,
        block.sequence_number,
        block.prev_block_hash,
        tuple(iter_wanted(event)),
        rows,
        event.dataset_id if isinstance(event, Seed) else None,
    )
