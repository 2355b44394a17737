"""The last common block of two histories is found, with no more questions than promised (EX-60)."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odf_protocol.history_search import HistorySearch
from odf_protocol.multihash import Multihash

LENGTHS = st.integers(1, 2_000)


def history(length: int, common: int, mark: str) -> list[Multihash]:
    """Hashes of a chain; those from number ``common`` on are its own."""
    return [Multihash.of_sha3_256(f"{mark if n >= common else ''}{n}".encode()) for n in range(length)]


def search(ours: list[Multihash], theirs: list[Multihash]) -> tuple[int, int]:
    """Return the result and the number of questions."""
    machine, query_service = HistorySearch(our_head=len(ours) - 1, their_head=len(theirs) - 1), 0
    while (number := machine.query_text) is not None:
        query_service += 1
        machine.answer(is_same=theirs[number] == ours[number])
    return machine.last_common, query_service


@given(LENGTHS, LENGTHS, st.integers(0, 2_000))
@example(1, 1, 0)
@example(1, 1, 1)
@example(2, 1, 0)
@example(2_000, 1_024, 1_023)
def test_last_common_block_is_found_with_few_questions(our_length: int, their_length: int, common: int) -> None:
    shorter = min(our_length, their_length)
    common = min(common, shorter)
    found, query_service = search(history(our_length, common, "a"), history(their_length, common, "b"))

    assert found == common - 1
    assert query_service <= math.floor(math.log2(shorter)) + 1


@pytest.mark.parametrize("exponent", range(21))
def test_bound_holds_at_every_power_of_two_and_beside_it(exponent: int) -> None:
    for length in {max(2**exponent + off, 1) for off in (-1, 0, 1)}:
        for common in {0, 1, length // 2, length - 1, length} - {length + 1}:
            machine, query_service = HistorySearch(our_head=length - 1, their_head=length - 1), 0
            while (number := machine.query_text) is not None:
                query_service += 1
                machine.answer(is_same=number < common)
            assert machine.last_common == common - 1
            assert query_service <= math.log2(length) + 1


@given(LENGTHS, st.data())
def test_answers_that_contradict_each_other_end_the_search_too(length: int, data: st.DataObject) -> None:
    machine, query_service = HistorySearch(our_head=length - 1, their_head=length + 7), 0
    while machine.query_text is not None:
        query_service += 1
        machine.answer(is_same=data.draw(st.booleans()))
    assert -1 <= machine.last_common < length
    assert query_service <= math.log2(length) + 1


def test_first_block_that_differs_leaves_nothing_common() -> None:
    machine = HistorySearch(our_head=0, their_head=0)
    assert machine.query_text == 0
    machine.answer(is_same=False)
    assert (machine.query_text, machine.last_common) == (None, -1)


def test_answer_without_a_question_is_a_mistake() -> None:
    machine = HistorySearch(our_head=-1, their_head=5)
    assert (machine.query_text, machine.last_common) == (None, -1)
    with pytest.raises(ValueError, match="no question"):
        machine.answer(is_same=False)
