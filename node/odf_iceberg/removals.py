"""Which rows of which slices are no current rows any more, and since which version.

A row that takes another one back (retract, correct-from) is never a current row. It ends one row of the same values
that was given (append, correct-to), as QUERY-3 counts them. Of equal rows the first given is the first ended; which of
them it is makes no difference to what a reader sees.

Source: clause ICEBERG-8 in ``spec/plug-ins/iceberg.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from odf_protocol.changelog_balance import are_taken
from odf_protocol.errors import UnsupportedError

MAX_REMOVED_ROWS: Final = 20_000_000  # guess: some 500 MB while they are looked for

_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SliceRemovals:
    """Rows of one slice that are no current rows, in the order in which they ended.

    Attributes:
        rows: Their places in the slice, from 0.
        since: The version at which each of them ended, ascending.
    """

    rows: _Places
    since: _Places

    def count_at(self, version: int) -> int:
        """Say how many had ended at a version."""
        return int(np.searchsorted(self.since, version, side="right"))


def find_removals(read: Callable[[int], npt.NDArray[Any]], count: int) -> tuple[SliceRemovals, ...]:
    """Find what ended in the slices of ``count`` versions.

    Args:
        read: Gives the rows of the slice of a version as ``CHANGE`` has them.
        count: How many versions there are.

    Raises:
        UnsupportedError: More rows ended than ``MAX_REMOVED_ROWS``.
    """
    taken = [_select(read(version), version, are_taken_back=True) for version in range(count)]
    taking = np.concatenate(taken) if taken else np.empty(0, _ROW)
    _require_room(len(taking))
    if not len(taking):
        nothing = np.empty(0, np.int64)
        return (SliceRemovals(nothing, nothing),) * count
    values = np.unique(taking[["high", "low"]])
    given = [_select(read(version), version, values=values) for version in range(count)]
    ended = _match(np.concatenate(given), taking)
    everything = np.concatenate([ended, taking])
    _require_room(len(everything))
    everything = everything[np.lexsort((everything["row"], everything["since"], everything["version"]))]
    ends = np.searchsorted(everything["version"], np.arange(count + 1))
    return tuple(
        SliceRemovals(everything["row"][start:end].copy(), everything["since"][start:end].copy())
        for start, end in pairwise(ends)
    )


_ROW: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("version", "<i8"), ("row", "<i8"), ("since", "<i8")])


def _select(
    changes: npt.NDArray[Any],
    version: int,
    *,
    are_taken_back: bool = False,
    values: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Give the rows of a slice that take rows back, or those given that equal one of ``values``."""
    chosen = are_taken(changes["op"])
    if not are_taken_back:
        assert values is not None
        chosen = ~chosen & np.isin(changes["high"], values["high"])
    places = np.flatnonzero(chosen)
    found = np.empty(len(places), _ROW)
    for name in ("high", "low"):
        found[name] = changes[name][places]
    found["version"], found["row"], found["since"] = version, places, version
    return found


def _match(given: npt.NDArray[Any], taking: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give the rows that were ended: of equal ones the n-th given is ended by the n-th that takes."""
    sides = np.concatenate([np.zeros(len(given), np.int8), np.ones(len(taking), np.int8)])
    rows = np.concatenate([given, taking])
    # Rows of versions come in order, so a stable sort keeps them so among equal ones.
    order = np.lexsort((sides, rows["low"], rows["high"]))
    rows, sides = rows[order], sides[order]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (
        (rows["high"][1:] != rows["high"][:-1]) | (rows["low"][1:] != rows["low"][:-1]) | (sides[1:] != sides[:-1])
    )
    group = np.cumsum(starts) - 1
    firsts = np.flatnonzero(starts)
    rank = np.arange(len(rows)) - firsts[group]
    is_given = sides == 0
    # A group of given rows is followed by the group that takes the same values, if there is one.
    following = np.minimum(group + 1, len(firsts) - 1)
    partner = firsts[following] + rank
    partner_end = np.append(firsts, len(rows))[following + 1]
    has_partner = is_given & (following > group) & (partner < partner_end)
    partner = np.where(has_partner, partner, 0)
    has_partner &= (
        (sides[partner] == 1) & (rows["high"][partner] == rows["high"]) & (rows["low"][partner] == rows["low"])
    )
    ended = rows[has_partner].copy()
    ended["since"] = np.maximum(ended["version"], rows["version"][partner[has_partner]])
    return np.asarray(ended)


def _require_room(count: int) -> None:
    if count > MAX_REMOVED_ROWS:
        raise UnsupportedError(
            "current rows as an Iceberg table", found=f"more than {MAX_REMOVED_ROWS:,} rows that ended"
        )
