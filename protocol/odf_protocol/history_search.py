"""Where two histories of one dataset part: found by asking for few hashes by their number.

Blocks name the hash of the block before them. So if two chains have the same block with some number, all blocks before
it are the same, and halving finds the last common one. The answers are the other side's word: they say where to look,
and what is found there is judged as everything is.

Source: clause EX-60 of ``spec/extensions/exchange.md``.
"""


class HistorySearch:
    """Finds the last common block of two chains; at most log2(n) + 1 questions where the shorter one has n blocks.

    >>> search = HistorySearch(our_head=3, their_head=9)
    >>> search.question
    1

    Attributes:
        last_common: Number of the last block that both are known to have; -1: none.
    """

    __slots__ = ("_first_different", "last_common")

    def __init__(self, *, our_head: int, their_head: int) -> None:
        """Make it from the numbers of both heads."""
        self.last_common = -1
        self._first_different = min(our_head, their_head) + 1

    @property
    def query_text(self) -> int | None:
        """The number of the block to compare next; None when ``last_common`` is the result."""
        if self._first_different - self.last_common <= 1:
            return None
        return (self.last_common + self._first_different) // 2

    def answer(self, *, is_same: bool) -> None:
        """Say whether both sides have the same block there; one that a side does not have is another."""
        if self.query_text is None:
            raise ValueError("there is an answer to no question")
        if is_same:
            self.last_common = self.query_text
        else:
            self._first_different = self.query_text
