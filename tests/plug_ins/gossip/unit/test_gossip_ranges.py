"""Range-based reconciliation: it finds every difference, and rejects what is no answer (GOSSIP-14 to GOSSIP-18)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_gossip_protocol.ranges import IdRange, IdSet, answer_ranges, compare_ranges, fingerprint, open_ranges
from odf_protocol.errors import MalformedError

NONCE = bytes(range(16))
LOW, HIGH = bytes(32), b"\xff" * 32


def ids(*numbers: int) -> list[bytes]:
    return [hashlib.sha3_256(str(number).encode()).digest() for number in numbers]


def reconcile(mine: IdSet, theirs: IdSet, *, most: int = 40) -> tuple[set[bytes], set[bytes], int]:
    missing: set[bytes] = set()
    extra: set[bytes] = set()
    asked = open_ranges(mine, NONCE)
    for step in range(1, most + 1):
        found = compare_ranges(mine, NONCE, asked, answer_ranges(theirs, NONCE, asked))
        missing |= set(found.missing)
        extra |= set(found.extra)
        asked = found.left
        if not asked:
            return missing, extra, step
    raise AssertionError("no end")


@given(st.sets(st.integers(0, 600), max_size=400), st.sets(st.integers(0, 600), max_size=400))
def test_every_difference_is_found_and_nothing_else(one: set[int], other: set[int]) -> None:
    here, there = set(ids(*one)), set(ids(*other))
    missing, extra, steps = reconcile(IdSet(here), IdSet(there))
    assert (missing, extra) == (there - here, here - there)
    assert steps <= 4


def test_equal_sets_take_one_step() -> None:
    assert reconcile(IdSet(ids(1, 2, 3)), IdSet(ids(3, 2, 1)))[2] == 1


def test_one_difference_among_many_takes_few_steps() -> None:
    many = ids(*range(20_000))
    missing, extra, steps = reconcile(IdSet(many[1:]), IdSet(many[:-1]))
    assert (missing, extra) == ({many[0]}, {many[-1]})
    assert steps <= 5


def test_who_has_nothing_is_told_ids_at_once() -> None:
    there = IdSet(ids(*range(300)))
    found = compare_ranges(IdSet(), NONCE, asked := open_ranges(IdSet(), NONCE), answer_ranges(there, NONCE, asked))
    assert len(found.missing) == 300
    assert not found.left


def test_answer_has_bounds_whatever_differs() -> None:
    many = ids(*range(20_000))
    here, there = IdSet(many[:10_000]), IdSet(many[10_000:])
    asked = open_ranges(here, NONCE)
    for _ in range(6):
        answer = answer_ranges(there, NONCE, asked)
        assert len(answer) <= 256
        asked = compare_ranges(here, NONCE, asked, answer).left
        assert len(asked) <= 256


def test_fingerprint_depends_on_nonce_number_and_ids() -> None:
    one, two = sorted(ids(1, 2))
    prints = {
        fingerprint(NONCE, []),
        fingerprint(NONCE, [one]),
        fingerprint(NONCE, [one, two]),
        fingerprint(HIGH[:16], [one]),
    }
    assert len(prints) == 4


PRINT = bytes(16)


@pytest.mark.parametrize(
    "ranges",
    [
        [IdRange(LOW, None)],
        [IdRange(LOW, None, PRINT, ())],
        [IdRange(LOW, None, ids=())],
        [IdRange(HIGH, LOW, PRINT)],
        [IdRange(LOW, LOW, PRINT)],
        [IdRange(LOW, None, PRINT), IdRange(HIGH, None, PRINT)],
        [IdRange(LOW, HIGH, PRINT), IdRange(LOW, None, PRINT)],
        [IdRange(bytes([0, number]) + bytes(30), bytes([0, number + 1]) + bytes(30), PRINT) for number in range(255)]
        + [IdRange(b"\x01" + bytes(31), b"\x02" + bytes(31), PRINT), IdRange(b"\x03" + bytes(31), None, PRINT)],
    ],
    ids=["neither", "both", "ids", "backwards", "empty", "overlap", "out-of-order", "too-many"],
)
def test_question_that_is_none_is_rejected(ranges: list[IdRange]) -> None:
    with pytest.raises(MalformedError):
        answer_ranges(IdSet(ids(1)), NONCE, ranges)


@pytest.mark.parametrize(
    "answer",
    [
        [IdRange(LOW, None, PRINT)],
        [IdRange(b"\x01" + bytes(31), b"\x30" + bytes(31), PRINT)],
        [IdRange(b"\x10" + bytes(31), b"\x20" + bytes(31), ids=(HIGH,))],
        [IdRange(b"\x10" + bytes(31), b"\x20" + bytes(31), ids=(b"\x12" + bytes(31), b"\x11" + bytes(31)))],
        [IdRange(b"\x10" + bytes(31), b"\x20" + bytes(31), ids=tuple(b"\x11" + bytes([n]) * 31 for n in range(17)))],
    ],
    ids=["wider", "sticks-out", "ids-outside", "ids-unsorted", "ids-too-many"],
)
def test_answer_that_is_none_is_rejected(answer: list[IdRange]) -> None:
    asked = [IdRange(b"\x10" + bytes(31), b"\x20" + bytes(31), PRINT)]
    with pytest.raises(MalformedError):
        compare_ranges(IdSet(), NONCE, asked, answer)
