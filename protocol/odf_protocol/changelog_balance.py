"""The rule of rows that are taken back: a changelog takes back nothing that it never gave.

A retraction or a correct-from names a row by its values. After each block, every row has been given (by appends and
correct-tos) at least as often as it has been taken. The order of rows inside a block is of no matter: a block is never
cut, existing engines write the rows of one step side by side, and whoever folds a changelog counts.

Source: clause ROWS-12 in ``spec/extensions/acceptance.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from odf_protocol.row_fingerprints import FINGERPRINT

CHANGE: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("op", "u1")])
"""A row of a changelog: its fingerprint, and its operation."""

_RETRACT: Final = 1  # Source: ODF OperationType
_CORRECT_FROM: Final = 2
_MANY: Final = 1 << 16  # guess: rows that a processor keeps close
_ROWS_AT_ONCE: Final = 1 << 20  # guess: some 50 MB of working memory


@dataclass(frozen=True, slots=True)
class UnsoundRows:
    """What a block takes back that is not there.

    Attributes:
        row: The first such row of the block, from 0; of those that nothing ever gave, where there are any.
        count: How many rows are taken back too often, each as often as it is.
        never_given: How many of them nothing in the chain gave up to and with the block; the others were taken before.
    """

    row: int
    count: int
    never_given: int

    def together(self, other: "UnsoundRows") -> "UnsoundRows":
        """Give what was found of two sets of rows of one block."""
        row = min((not each.never_given, each.row) for each in (self, other))[1]
        return UnsoundRows(row, self.count + other.count, self.never_given + other.never_given)


def are_taken(operations: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say which rows take another one back."""
    return np.isin(operations, (_RETRACT, _CORRECT_FROM))


class ChangelogBalance:
    """How often each of some rows is there; all others are not looked at. Blocks are added in their order."""

    def __init__(self, rows: npt.NDArray[Any], *, part: int = 0, parts: int = 1) -> None:
        """Begin before the first block.

        Args:
            rows: Fingerprints of the rows that are looked at, some of them repeated.
            part: Which of the parts, into which all fingerprints fall, they are of.
            parts: How many these are.
        """
        self._part, self._parts = np.uint64(part), np.uint64(parts)
        high, low = np.ascontiguousarray(rows["high"]), np.ascontiguousarray(rows["low"])
        order = np.argsort(high)
        if np.any((high[order][1:] == high[order][:-1]) & (low[order][1:] != low[order][:-1])):
            order = np.lexsort((low, high))  # as slow as it is rare: two rows that share their upper half
        high, low = high[order], low[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        self._high, self._low = high[is_first], low[is_first]
        self._balance = np.zeros(len(self._high), np.int64)
        self._was_given = np.zeros(len(self._high), np.bool_)

    def add(self, changes: npt.NDArray[Any]) -> UnsoundRows | None:
        """Count the rows of a block, given as ``CHANGE`` has them; say what it takes back that is not there."""
        if not len(self._high):
            return None
        before = np.minimum(self._balance, 0)
        takes = False
        for _, places, taken in self._iter_known(changes):
            np.add.at(self._balance, places, np.where(taken, -1, 1))
            self._was_given[places[~taken]] = True
            takes = takes or bool(taken.any())
        if not takes or not (missing := np.maximum(before - self._balance, 0)).any():
            return None
        never = np.where(self._was_given, 0, missing)
        left = (never if never.any() else missing).copy()
        first = 0
        # The last ones of each row are those too many; of them the one that comes first is named.
        for rows, places, taken in self._iter_known(changes, from_the_end=True):
            for row, place in zip(rows[taken][::-1].tolist(), places[taken][::-1].tolist(), strict=True):
                if left[place]:
                    left[place] -= 1
                    first = row
        return UnsoundRows(first, int(missing.sum()), int(never.sum()))

    def _iter_known(
        self, changes: npt.NDArray[Any], *, from_the_end: bool = False
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
        """Yield rows that are looked at, with their places here and whether they take."""
        starts = range(0, len(changes), _ROWS_AT_ONCE)
        for start in reversed(starts) if from_the_end else starts:
            part = changes[start : start + _ROWS_AT_ONCE]
            rows = (
                np.arange(len(part)) if self._parts == 1 else np.flatnonzero(part["high"] % self._parts == self._part)
            )
            if len(self._high) >= _MANY and not from_the_end:
                rows = rows[np.argsort(part["high"][rows])]  # who looks in order goes through memory from end to end
            places, known = self._find(part["high"][rows], part["low"][rows])
            rows = rows[known]
            yield rows + start, places[known], are_taken(part["op"][rows])

    def _find(
        self, high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        places = np.searchsorted(self._high, high)
        last = len(self._high) - 1
        while True:
            inside = np.minimum(places, last)
            meets = (places <= last) & (self._high[inside] == high)
            passed = meets & (self._low[inside] < low)  # two rows that are looked at may share their upper half
            if not passed.any():
                return inside, meets & (self._low[inside] == low)
            places = places + passed


def taken_rows(changes: npt.NDArray[Any], *, part: int = 0, parts: int = 1) -> npt.NDArray[Any]:
    """Return the fingerprints of the rows of a slice that take another one back, as far as they are of a part."""
    taking = changes[are_taken(changes["op"]) & (changes["high"] % np.uint64(parts) == part)]
    found = np.empty(len(taking), FINGERPRINT)
    found["high"], found["low"] = taking["high"], taking["low"]
    return found
