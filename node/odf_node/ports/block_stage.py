"""Where blocks of others wait until they are accepted, seen by nobody, gone with the process.

Long chains wait outside of memory; a few blocks in ``MemoryStage``.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple, overload


@dataclass(frozen=True, slots=True)
class ProposedBlock:
    """One block as it came: bytes, and what the sender says goes with them. Nothing of it has been checked."""

    raw: bytes
    signature: bytes | None = None
    step_record: bytes | None = None


class StagedBlock(NamedTuple):
    """An offered block with what a verifier found out about it.

    Attributes:
        proposed: As it came.
        digest: SHA3-256 of its bytes, 32 bytes.
        traits: What it is good for (``odf_protocol.block_traits``); 0 where no verifier looked at it.
    """

    proposed: ProposedBlock
    digest: bytes
    traits: int


class BlockStage(Sequence[ProposedBlock]):
    """Offered blocks in the order in which they came. For one user at a time; not for several threads at once.

    Raises on writing: HomeFullError, HomeReadOnlyError.
    """

    @abstractmethod
    def append(self, block: StagedBlock) -> None:
        """Put a block behind the others."""

    @abstractmethod
    def iter_staged(self, first: int = 0) -> Iterator[StagedBlock]:
        """Yield the blocks from position ``first`` on; other methods may be called meanwhile."""

    @property
    @abstractmethod
    def traits(self) -> int:
        """What any of the blocks is good for: their traits together."""

    @abstractmethod
    def iter_with(self, wanted: int) -> Iterator[StagedBlock]:
        """Yield the blocks that have one of the ``wanted`` traits, in order; the others cost next to nothing."""

    @abstractmethod
    def get_staged(self, position: int) -> StagedBlock:
        """Return the block at a position; below zero: counted from the end."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all blocks."""

    @abstractmethod
    def close(self) -> None:
        """Forget all blocks and let go of the place where they were; the stage is not used afterwards."""


OpenStage = Callable[[], BlockStage]
"""Makes an empty stage, which the caller closes."""


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
    def __getitem__(self, place: int) -> ProposedBlock: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ProposedBlock]: ...
    def __getitem__(self, place: int | slice) -> ProposedBlock | Sequence[ProposedBlock]:
        if isinstance(place, slice):
            return [staged.proposed for staged in self._blocks[place]]
        return self._blocks[place].proposed
