"""What the steps of a derivative are together: folded along the chain, whatever its length (PLAN-9 to PLAN-11)."""

import pytest

from odf_protocol.chain import Strictness, append
from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.coverage import MAX_LAPSES, ChainProgress, Coverage, decode_progress
from odf_protocol.errors import CorruptError, RejectedError
from odf_protocol.events import Event, ExecuteTransform, ExecuteTransformInput
from support.chains import (
    INPUT_A,
    INPUT_B,
    ChainBuilder,
    later,
    ordinary_derivative_events,
    ordinary_root_events,
    rows,
    schema,
    step,
    transform,
)


def made(number: int, *inputs: ExecuteTransformInput) -> ExecuteTransform:
    """The step that makes ten rows, the ``number``-th."""
    return ExecuteTransform(
        query_inputs=inputs,
        prev_offset=number * 10 - 1 if number else None,
        new_data=rows(number * 10, number * 10 + 9),
        new_watermark=later(number),
    )


BEGINNING: tuple[Event, ...] = (transform(INPUT_A), schema(), made(0, step(INPUT_A, None, 0)))
DECOY: tuple[Event, ...] = (*BEGINNING, transform(INPUT_B), made(1, step(INPUT_B, None, 0)), transform(INPUT_A))


def coverage_of(*events: Event) -> Coverage:
    state = ChainBuilder.derivative(*events).state()
    assert state is not None
    stored = encode_state(state)
    assert decode_state(stored) == state
    assert decode_progress(stored).partial == state.coverage.describe()
    return state.coverage


def test_one_query_over_the_whole_input_is_whole() -> None:
    assert coverage_of(*BEGINNING, made(1, step(INPUT_A, 0, 3))).describe() == ""


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param(
            (transform(INPUT_A), schema(), made(0, step(INPUT_A, 1, 2))),
            f"block 3 leaves out rows 0 to 19 of {INPUT_A}",
            id="begins-in-the-middle",
        ),
        pytest.param(
            (*DECOY, made(2, step(INPUT_A, 2, 3))),
            f"block 7 leaves out rows 10 to 29 of {INPUT_A}",
            id="back-from-a-decoy-behind-a-gap",
        ),
        pytest.param(
            (*DECOY, made(2, step(INPUT_A, None, 3))),
            f"block 7 takes rows 0 to 9 of {INPUT_A} again",
            id="back-from-a-decoy-to-the-beginning",
        ),
        pytest.param(
            (*DECOY, made(2, step(INPUT_A, 5, 6, prev_offset=9))),
            f"block 7 takes up {INPUT_A} at another block",
            id="another-block-at-the-same-row",
        ),
    ],
)
def test_step_that_takes_an_input_up_elsewhere_is_a_lapse(events: tuple[Event, ...], text: str) -> None:
    coverage = coverage_of(*events)

    assert coverage.describe_lapses() == text
    assert text in coverage.describe()
    assert coverage.describe_lapses(since=8) == ""
    with pytest.raises(RejectedError, match="CHAIN-30"):  # a chain of our own never has one
        ChainBuilder.derivative(*events).state(Strictness.OWN)


def test_input_that_comes_back_goes_on_where_it_was() -> None:
    chain = ChainBuilder.derivative(*DECOY, made(2, step(INPUT_A, 0, 3)))
    state = chain.state(Strictness.OWN)
    assert state is not None

    assert state.coverage.describe() == "rows 0 to 19 are of 2 earlier queries"
    assert {item.dataset_id: item.offset for item in state.progress_by_input().values()} == {INPUT_A: 39, INPUT_B: 9}


def test_rows_before_a_redefinition_are_named() -> None:
    redefined = (*BEGINNING, transform(INPUT_A))

    assert coverage_of(*redefined).is_late
    assert coverage_of(*redefined).describe() == "no step is of the query in force, all are of an earlier query"
    followed = coverage_of(*redefined, made(1, step(INPUT_A, 0, 3)))
    assert (followed.is_late, followed.describe()) == (False, "rows 0 to 9 are of an earlier query")


def test_earlier_query_that_ate_the_input_without_a_row_is_named() -> None:
    eaten = ExecuteTransform(query_inputs=(step(INPUT_A, None, 5),), new_watermark=later(1))
    coverage = coverage_of(transform(INPUT_A), schema(), eaten, transform(INPUT_A), made(0, step(INPUT_A, 5, 6)))

    assert coverage.describe() == "an earlier query read the inputs first"


def test_query_that_is_replaced_before_its_first_step_is_no_earlier_query() -> None:
    assert coverage_of(transform(INPUT_B), *BEGINNING).describe() == ""


def test_size_is_bounded_however_many_lapses_there_are() -> None:
    events = list(BEGINNING)
    for number in range(1, 3 * MAX_LAPSES):
        read = (INPUT_A, INPUT_B)[number % 2]
        events += [transform(read), made(number, step(read, 2 * number, 2 * number + 1))]
    coverage = coverage_of(*events)

    assert len(coverage.lapses) == MAX_LAPSES
    state = ChainBuilder.derivative(*events).state()
    assert state is not None
    assert len(encode_state(state)) < 4_000


def test_verification_of_many_blocks_tells_a_redefinition_too() -> None:
    """CHAIN-50: as one by one."""
    from odf_protocol.chain.verify import ChainVerifier

    events = (*BEGINNING, made(1, step(INPUT_A, 0, 1)), transform(INPUT_A), made(2, step(INPUT_A, 1, 2)))
    blocks = ChainBuilder.derivative(*events).blocks
    verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    verifier.verify(block.raw for block in blocks)
    state = None
    for block in blocks:
        state, _ = append(state, block, strictness=Strictness.FOREIGN)

    assert verifier.state == state
    assert verifier.state is not None
    assert verifier.state.coverage.describe() == "rows 0 to 19 are of an earlier query"


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (ChainBuilder.root(), ChainProgress(0, None)),
        (ChainBuilder.root(*ordinary_root_events(3)), ChainProgress(30, later(29))),
        (ChainBuilder.derivative(*ordinary_derivative_events(4)), ChainProgress(40, later(3))),
    ],
    ids=["empty", "root", "derivative"],
)
def test_progress_is_that_of_the_whole_state(chain: ChainBuilder, expected: ChainProgress) -> None:
    state = chain.state()
    assert state is not None
    found = decode_progress(encode_state(state))
    assert found == expected
    whole = decode_state(encode_state(state))
    assert (found.row_count - 1 if found.row_count else None, found.watermark) == (whole.last_offset, whole.watermark)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"last_offset": "9"}', b'{"last_offset": 1.5}', b'{"watermark": "noon"}', b'{"watermark": 1}'],
)
def test_damaged_state_is_named_as_such(data: bytes) -> None:
    with pytest.raises(CorruptError, match="stored chain state"):
        decode_progress(data)
