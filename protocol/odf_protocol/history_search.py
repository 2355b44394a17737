"""Where two histories of one dataset part: found by asking for few hashes by their number.

Blocks name the hash of the block before them. So if two chains have the same block with some number, all blocks before
it are the same, and halving finds the last common one. The answers are the other side's word: they say where to look,
and what is found there is judged as everything is.

Source: clause EX-60 of ``spec/extensions/exchange.md``.
"""

from dataclasses import dataclass

from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class AskHash:
    """Ask the other side for the hash of its block with this number."""

    sequence_number: int


@dataclass(frozen=True, slots=True)
class HashAnswer:
    """What the other side said, and what is held here; None where there is no such block."""

    theirs: Multihash | None
    ours: Multihash | None


@dataclass(frozen=True, slots=True)
class PartsAfter:
    """The number of the last block that both histories have; -1: none."""

    sequence_number: int


class HistorySearch:
    """Finds the last common block of two chains; at most log2(n) + 1 questions where the shorter one has n blocks.

    >>> search = HistorySearch(our_head=3, their_head=9)
    >>> search.begin()
    AskHash(sequence_number=1)
    """

    __slots__ = ("_asked", "_common", "_different")

    def __init__(self, *, our_head: int, their_head: int) -> None:
        """Make it from the numbers of both heads."""
        self._common = -1
        self._different = min(our_head, their_head) + 1
        self._asked: int | None = None

    def begin(self) -> AskHash | PartsAfter:
        """Give the first question; the result at once where one side has no blocks."""
        return self._next()

    def handle(self, answer: HashAnswer) -> AskHash | PartsAfter:
        """Take the answer to the question before and give the next one, or the result.

        A block that one side does not have is one that differs.
        """
        if self._asked is None:
            raise ValueError("there is an answer to no question")
        if answer.ours is not None and answer.theirs == answer.ours:
            self._common = self._asked
        else:
            self._different = self._asked
        return self._next()

    def _next(self) -> AskHash | PartsAfter:
        if self._different - self._common <= 1:
            self._asked = None
            return PartsAfter(self._common)
        self._asked = (self._common + self._different) // 2
        return AskHash(self._asked)
