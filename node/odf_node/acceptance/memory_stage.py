"""A stage for few blocks, in memory."""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import overload

from odf_node.ports.block_stage import BlockStage, OfferedBlock, StagedBlock


class MemoryStage(BlockStage):
    """A list of blocks."""

    def __init__(self) -> None:
        """Make an empty stage."""
        self._blocks: list[StagedBlock] = []

    def append(self, block: StagedBlock) -> None:
        """See ``BlockStage``."""
        self._blocks.append(block)

    def iter_staged(self, first: int = 0) -> Iterator[StagedBlock]:
        """See ``BlockStage``."""
        return iter(self._blocks[first:])

    @property
    def traits(self) -> int:
        """See ``BlockStage``."""
        return reduce(or_, (staged.traits for staged in self._blocks), 0)

    def iter_with(self, wanted: int) -> Iterator[StagedBlock]:
        """See ``BlockStage``."""
        return (staged for staged in self._blocks if staged.traits & wanted)

    def get_staged(self, position: int) -> StagedBlock:
        """See ``BlockStage``."""
        return self._blocks[position]

    def clear(self) -> None:
        """See ``BlockStage``."""
        self._blocks.clear()

    def close(self) -> None:
        """See ``BlockStage``."""
        self._blocks.clear()

    def __len__(self) -> int:
        return len(self._blocks)

    @overload
    def __getitem__(self, place: int) -> OfferedBlock: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[OfferedBlock]: ...
    def __getitem__(self, place: int | slice) -> OfferedBlock | Sequence[OfferedBlock]:
        if isinstance(place, slice):
            return [staged.offered for staged in self._blocks[place]]
        return self._blocks[place].offered
