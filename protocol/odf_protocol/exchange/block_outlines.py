"""What a carrier of blocks needs to know of each: its number, its link, the objects it names. Rules are for others.

Ordinary blocks that are laid out like one that was decoded before, and name no objects, are read by position.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from odf_protocol.block import decode_block
from odf_protocol.block_shape import KnownShapes
from odf_protocol.block_traits import CHECKPOINT, ROWS
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, Event, ExecuteTransform, Seed
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.multihash import SHA3_256, Multihash


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


_LINK, _NUMBER = 4, 5
"""Places in what ``Shape.read`` returns."""


@dataclass(frozen=True, slots=True)
class BlockOutline:
    """A block in the eyes of whoever carries it; ``seed_of`` is set in a Seed, ``rows`` counts rows that are added."""

    hash: Multihash
    sequence_number: int
    prev_block_hash: Multihash | None
    wanted: tuple[WantedObject, ...] = ()
    rows: int = 0
    seed_of: DatasetId | None = None


class BlockOutlines:
    """Reads blocks of one chain, one after the other."""

    def __init__(self) -> None:
        """Begin without any knowledge of how the blocks look."""
        self._shapes = KnownShapes()

    def read(self, raw: bytes, block_hash: Multihash | None = None) -> BlockOutline:
        """Read one block.

        Args:
            raw: Its bytes; untrusted.
            block_hash: SHA3-256 of them, where the caller has computed it.

        Raises:
            MalformedError, UnsupportedError: The bytes are no block of a known version.
        """
        for shape in self._shapes.iter_matching(raw):
            if not shape.traits & (ROWS | CHECKPOINT):
                values = shape.read(raw)
                link = None if values[_LINK] is None else Multihash(SHA3_256, values[_LINK])
                return BlockOutline(block_hash or Multihash.of_sha3_256(raw), values[_NUMBER], link)
        block = decode_block(raw, expected_hash=None)
        self._shapes.remember(block)
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
