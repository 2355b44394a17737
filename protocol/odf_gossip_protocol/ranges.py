"""Find out in which items two nodes differ, by fingerprints of ranges of item ids.

The asker names ranges with the fingerprint of what it has in each. The answerer passes over those that agree, lists its
ids where it has few, and cuts the others into ranges of its own. It keeps nothing between requests; the asker goes on
until everything that differed was listed, or its patience ends.

A fingerprint is a hash over the sorted ids, keyed with a number that the asker made up for this one reconciliation.
Sums and exclusive-ors of ids, which are cheaper to keep up to date, can be steered by whoever makes items: for the
latter linear algebra finds items that cancel each other out, for the former a generalised birthday search. Here a
hidden difference would be a collision of SHA3-256 cut to 128 bits, found for a key that is known only when it is too
late to make items for it.

Source: clauses GOSSIP-14 to GOSSIP-18 in ``spec/plug-ins/gossip.md``.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha3_256
from typing import Annotated, Final

import msgspec

from odf_gossip_protocol.item import ITEM_ID_BYTES
from odf_protocol.errors import MalformedError

FINGERPRINT_BYTES: Final = 16
NONCE_BYTES: Final = 16
MAX_RANGES: Final = 256  # guess: some 15 kB in either direction
_PREFIX: Final = b"odf-node-gossip-range-v1\x00"
_BRANCHES: Final = 16  # guess: three steps for 20,000 items
_LISTED_IDS: Final = 16
"""A range with so many ids or fewer is listed: a fingerprint for each of its parts would not be smaller."""
_LISTED_RANGES: Final = 32
"""So many lists at most for a range in which the asker has nothing."""
_FIRST: Final = bytes(ITEM_ID_BYTES)

ItemId = Annotated[bytes, msgspec.Meta(min_length=ITEM_ID_BYTES, max_length=ITEM_ID_BYTES)]
_Fingerprint = Annotated[bytes, msgspec.Meta(min_length=FINGERPRINT_BYTES, max_length=FINGERPRINT_BYTES)]


class IdRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ids from ``lower`` on, below ``upper`` (None: to the end): their fingerprint, or all of them. Travels as it is.

    Attributes:
        lower: First id that belongs to it.
        upper: First id that does not.
        fingerprint: Of the ids in it; None where they are listed.
        ids: All of them, sorted; None where a fingerprint stands for them.
    """

    lower: ItemId = _FIRST
    upper: ItemId | None = None
    fingerprint: _Fingerprint | None = None
    ids: Annotated[tuple[ItemId, ...], msgspec.Meta(max_length=64)] | None = None


@dataclass(frozen=True, slots=True)
class RangeDifference:
    """What an answer showed.

    Attributes:
        missing: Ids that the other side has and this one has not.
        extra: Ids that this side has and the other has not.
        left: Ranges to ask about next.
    """

    missing: tuple[bytes, ...]
    extra: tuple[bytes, ...]
    left: tuple[IdRange, ...]


class IdSet:
    """Ids in order."""

    def __init__(self, ids: Iterable[bytes] = ()) -> None:
        self._ids = sorted(set(ids))

    def add(self, id_: bytes) -> None:
        """Take in an id that is not there."""
        insort(self._ids, id_)

    def remove(self, id_: bytes) -> None:
        """Take out an id that is there."""
        del self._ids[bisect_left(self._ids, id_)]

    def between(self, lower: bytes, upper: bytes | None) -> Sequence[bytes]:
        """Return the ids of a range, sorted."""
        start = bisect_left(self._ids, lower)
        return self._ids[start : len(self._ids) if upper is None else bisect_left(self._ids, upper)]

    def __len__(self) -> int:
        return len(self._ids)


def fingerprint(nonce: bytes, ids: Sequence[bytes]) -> bytes:
    """Return 16 bytes for sorted ids: a hash of a fixed text, the nonce, their number and all of them (GOSSIP-15)."""
    parts = (_PREFIX, nonce, len(ids).to_bytes(8, "little"), *ids)
    return sha3_256(b"".join(parts)).digest()[:FINGERPRINT_BYTES]


def open_ranges(ids: IdSet, nonce: bytes) -> tuple[IdRange, ...]:
    """Begin a reconciliation: everything in one range, as most often nothing differs."""
    return (IdRange(_FIRST, None, fingerprint(nonce, ids.between(_FIRST, None))),)


def answer_ranges(ids: IdSet, nonce: bytes, asked: Sequence[IdRange]) -> tuple[IdRange, ...]:
    """Answer a stranger's ranges: nothing for those that agree, ids or finer ranges for the others.

    Raises:
        MalformedError: Ranges out of order, overlapping, too many, or without a fingerprint.
    """
    _check(asked, "asked range")
    answer: list[IdRange] = []
    nothing = fingerprint(nonce, ())
    for one in asked:
        if one.fingerprint is None:
            raise MalformedError("asked range", expected="a fingerprint", found="ids")
        here = ids.between(one.lower, one.upper)
        if fingerprint(nonce, here) == one.fingerprint:
            continue
        if len(answer) + _LISTED_RANGES > MAX_RANGES:
            break  # the rest is left for the next reconciliation
        if one.fingerprint == nothing:
            answer += _list(here, one.lower, one.upper, nonce)
        else:
            answer += _describe(here, one.lower, one.upper, nonce)
    return tuple(answer)


def compare_ranges(ids: IdSet, nonce: bytes, asked: Sequence[IdRange], answered: Sequence[IdRange]) -> RangeDifference:
    """Read a stranger's answer.

    Raises:
        MalformedError: Not an answer to what was asked: out of order, outside of it, or ids outside of their range.
    """
    _check(answered, "answered range")
    missing: list[bytes] = []
    extra: list[bytes] = []
    left: list[IdRange] = []
    # Both are in order: what was asked is walked through once, whatever the answer.
    outers = iter(asked)
    outer = next(outers, None)
    for one in answered:
        while outer is not None and outer.upper is not None and outer.upper <= one.lower:
            outer = next(outers, None)
        if outer is None or not _lies_within(one, outer):
            raise MalformedError("answered range", expected="a part of one that was asked", found=one.lower.hex())
        here = ids.between(one.lower, one.upper)
        if one.ids is not None:
            theirs, ours = set(one.ids), set(here)
            missing += [id_ for id_ in one.ids if id_ not in ours]
            extra += [id_ for id_ in here if id_ not in theirs]
        elif (own := fingerprint(nonce, here)) != one.fingerprint:
            left.append(IdRange(one.lower, one.upper, own))
    return RangeDifference(tuple(missing), tuple(extra), tuple(left[:MAX_RANGES]))


def _describe(here: Sequence[bytes], lower: bytes, upper: bytes | None, nonce: bytes) -> list[IdRange]:
    if len(here) <= _LISTED_IDS:
        return [IdRange(lower, upper, ids=tuple(here))]
    step = -(-len(here) // _BRANCHES)
    starts = range(0, len(here), step)
    edges = [lower, *(here[start] for start in starts[1:]), upper]
    return [
        IdRange(edges[number] or lower, edges[number + 1], fingerprint(nonce, here[start : start + step]))
        for number, start in enumerate(starts)
    ]


def _list(here: Sequence[bytes], lower: bytes, upper: bytes | None, nonce: bytes) -> list[IdRange]:
    """Answer somebody who has nothing in a range: ids at once, as finer fingerprints would tell them nothing."""
    listed = here[: (_LISTED_RANGES - 1) * _LISTED_IDS]
    starts = range(0, len(listed), _LISTED_IDS)
    rest = here[len(listed) :]
    edges = [lower, *(listed[start] for start in starts[1:]), rest[0] if rest else upper]
    ranges = [
        IdRange(edges[number] or lower, edges[number + 1], ids=tuple(listed[start : start + _LISTED_IDS]))
        for number, start in enumerate(starts)
    ]
    return [*ranges, IdRange(rest[0], upper, fingerprint(nonce, rest))] if rest else ranges


def _check(ranges: Sequence[IdRange], what: str) -> None:
    if len(ranges) > MAX_RANGES:
        raise MalformedError(what, expected=f"at most {MAX_RANGES}", found=len(ranges))
    end: bytes | None = _FIRST
    for one in ranges:
        if end is None or one.lower < end or (one.upper is not None and one.upper <= one.lower):
            raise MalformedError(what, expected="ranges in order, none empty", found=one.lower.hex())
        end = one.upper
        if (one.fingerprint is None) == (one.ids is None):
            raise MalformedError(what, expected="either a fingerprint or ids", found="both or neither")
        if one.ids is None:
            continue
        if len(one.ids) > _LISTED_IDS or list(one.ids) != sorted(set(one.ids)):
            raise MalformedError(what, expected=f"at most {_LISTED_IDS} sorted ids", found=len(one.ids))
        if one.ids and (one.ids[0] < one.lower or (one.upper is not None and one.ids[-1] >= one.upper)):
            raise MalformedError(what, expected="ids of the range", found=one.ids[0].hex())


def _lies_within(inner: IdRange, outer: IdRange) -> bool:
    if inner.lower < outer.lower:
        return False
    return outer.upper is None or (inner.upper is not None and inner.upper <= outer.upper)
