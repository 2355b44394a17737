"""CHAIN-50, the dangerous side: blocks laid out like accepted ones, with one wrong value, are rejected."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from odf_protocol.block import decode_block
from odf_protocol.chain import ChainState, ChainWarning, Strictness, append
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.events import AddData, ExecuteTransform, ExecuteTransformInput, SourceState
from support.chains import (
    INPUT_A,
    INPUT_B,
    ChainBuilder,
    add_rows,
    checkpoint,
    hash_of,
    later,
    rows,
    schema,
    step,
    transform,
)

TAIL = 6  # blocks of data before the one that is judged


def data_event(n: int, **changes: Any) -> AddData:
    """The n-th slice of a chain in which everything is carried on: rows, checkpoint, watermark, source state."""
    carried: dict[str, Any] = {
        "prev_checkpoint": hash_of(f"checkpoint {n - 1}") if n else None,
        "new_checkpoint": checkpoint(f"checkpoint {n}"),
        "new_source_state": SourceState(source_name="default", kind="odf/etag", value=f"{n:03}"),
    }
    return add_rows(n * 10, n * 10 + 9, **(carried | changes))


def step_event(n: int, **changes: Any) -> ExecuteTransform:
    """The n-th step over two inputs that both advance each time."""
    prev = n - 1 if n else None
    fields: dict[str, Any] = {
        "query_inputs": (step(INPUT_A, prev, n), step(INPUT_B, prev, n)),
        "prev_offset": n * 10 - 1 if n else None,
        "new_data": rows(n * 10, n * 10 + 9),
        "new_watermark": later(n),
    }
    return ExecuteTransform(**(fields | changes))


def root_chain() -> ChainBuilder:
    return ChainBuilder.root(schema(), *map(data_event, range(TAIL)))


def derivative_chain() -> ChainBuilder:
    return ChainBuilder.derivative(transform(INPUT_A, INPUT_B), schema(), *map(step_event, range(TAIL)))


def state_of(raws: Iterable[bytes], strictness: Strictness) -> tuple[ChainState | None, list[ChainWarning]]:
    state, warnings = None, []
    for raw in raws:
        state, found = append(state, decode_block(raw, expected_hash=None), strictness=strictness)
        warnings += found
    return state, warnings


def warmed(chain: ChainBuilder, strictness: Strictness = Strictness.OWN) -> ChainVerifier:
    """A verifier that has seen the chain."""
    verifier = ChainVerifier(None, strictness=strictness)
    verifier.verify(block.raw for block in chain.blocks)
    return verifier


def assert_rejected(chain: ChainBuilder, raw: bytes, clause: str) -> None:
    verifier = warmed(chain)
    before = verifier.state
    with pytest.raises(RejectedError, match=rf"breaks {clause} "):
        verifier.verify([raw])
    assert verifier.state == before


@pytest.mark.parametrize(
    ("chain", "event"), [(root_chain(), data_event), (derivative_chain(), step_event)], ids=["root", "derivative"]
)
@pytest.mark.parametrize("version", [2, 3])
def test_state_after_blocks_of_either_version_is_the_same(
    chain: ChainBuilder, event: Callable[[int], AddData | ExecuteTransform], version: int
) -> None:
    chain = ChainBuilder(list(chain.blocks), version)
    chain.add(event(TAIL)).add(event(TAIL + 1))
    verifier = warmed(chain)
    assert (verifier.state, []) == state_of((block.raw for block in chain.blocks), Strictness.OWN)


@pytest.mark.parametrize(
    ("clause", "header"),
    [
        pytest.param("CHAIN-5", {"sequence_number": TAIL + 1}, id="same-number"),
        pytest.param("CHAIN-6", {"sequence_number": TAIL + 3}, id="number-skipped"),
        pytest.param("CHAIN-7", {"prev_block_hash": hash_of("a")}, id="another-link"),
        pytest.param("CHAIN-8", {"system_time": later(TAIL)}, id="time-runs-back"),
    ],
)
def test_wrong_header_is_rejected(clause: str, header: dict[str, Any]) -> None:
    chain = root_chain()
    assert_rejected(chain, chain.next(data_event(TAIL), **header).raw, clause)


FIRST = TAIL * 10
WRONG_DATA = [
    pytest.param("CHAIN-15", {"new_data": rows(FIRST, FIRST - 1)}, id="interval-reversed"),
    pytest.param("CHAIN-16", {"new_data": rows(FIRST, 2**63), "new_watermark": later(FIRST)}, id="offset-too-large"),
    pytest.param("CHAIN-17", {"prev_offset": FIRST, "new_data": rows(FIRST + 1, FIRST + 2)}, id="prev-offset-ahead"),
    pytest.param("CHAIN-17", {"prev_offset": FIRST - 2, "new_data": rows(FIRST - 1, FIRST)}, id="prev-offset-behind"),
    pytest.param("CHAIN-19", {"new_data": rows(FIRST + 1, FIRST + 2)}, id="rows-missing"),
    pytest.param("CHAIN-19", {"new_data": rows(FIRST - 1, FIRST + 2)}, id="rows-twice"),
    pytest.param("CHAIN-24", {"new_watermark": later(FIRST - 2)}, id="watermark-falls"),
]


@pytest.mark.parametrize(("clause", "changes"), WRONG_DATA)
def test_wrong_slice_of_a_root_is_rejected(clause: str, changes: dict[str, Any]) -> None:
    chain = root_chain()
    assert_rejected(chain, chain.next(data_event(TAIL, **changes)).raw, clause)


def test_wrong_checkpoint_is_rejected() -> None:
    chain = root_chain()
    assert_rejected(chain, chain.next(data_event(TAIL, prev_checkpoint=hash_of("a"))).raw, "CHAIN-23")


@pytest.mark.parametrize(
    ("clause", "spoil"),
    [
        pytest.param("CHAIN-26", lambda item: replace(item, new_block_hash=item.prev_block_hash), id="block-stays"),
        pytest.param("CHAIN-27", lambda item: replace(item, new_offset=item.prev_offset), id="offset-stays"),
        pytest.param("CHAIN-27", lambda item: replace(item, new_offset=item.prev_offset - 1), id="offset-falls"),
        pytest.param("CHAIN-28", lambda item: replace(item, prev_block_hash=hash_of("a")), id="another-block"),
        pytest.param("CHAIN-28", lambda item: replace(item, prev_offset=item.prev_offset - 1), id="another-row"),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_wrong_input_is_rejected(
    clause: str, spoil: Callable[[ExecuteTransformInput], ExecuteTransformInput], place: int
) -> None:
    chain = derivative_chain()
    inputs = list(step_event(TAIL).query_inputs)
    inputs[place] = spoil(inputs[place])
    assert_rejected(chain, chain.next(step_event(TAIL, query_inputs=tuple(inputs))).raw, clause)


def test_inputs_in_the_order_of_a_former_definition_are_rejected() -> None:
    chain = derivative_chain().add(transform(INPUT_B, INPUT_A))
    assert_rejected(chain, chain.next(step_event(TAIL)).raw, "CHAIN-25")
    a, b = step_event(TAIL).query_inputs
    chain.add(step_event(TAIL, query_inputs=(b, a)))
    assert_rejected(chain, chain.next(step_event(TAIL + 1)).raw, "CHAIN-25")


def test_inputs_with_equal_progress_are_still_told_apart() -> None:
    def twins(n: int) -> ExecuteTransform:
        prev = hash_of(f"twin {n - 1}") if n else None
        a, b = (
            replace(item, prev_block_hash=prev, new_block_hash=hash_of(f"twin {n}"))
            for item in step_event(n).query_inputs
        )
        return step_event(n, query_inputs=(a, b))

    chain = ChainBuilder.derivative(transform(INPUT_A, INPUT_B), schema(), *map(twins, range(TAIL)))
    chain.add(transform(INPUT_B, INPUT_A))
    a, b = twins(TAIL).query_inputs
    chain.add(step_event(TAIL, query_inputs=(b, a)))
    assert_rejected(chain, chain.next(twins(TAIL + 1)).raw, "CHAIN-25")


def test_time_that_is_no_time_is_rejected() -> None:
    chain = root_chain()
    block = chain.next(data_event(TAIL))
    year, day, second, _nanosecond = block.system_time.to_day_of_year()
    struct = year.to_bytes(4, "little") + day.to_bytes(2, "little") + b"\0\0" + second.to_bytes(4, "little")
    assert block.raw.count(struct) == 1
    raw = block.raw.replace(struct, struct[:8] + (90_000).to_bytes(4, "little"))
    verifier = warmed(chain)
    with pytest.raises(MalformedError, match=r"MetadataBlock\.system_time"):
        verifier.verify([raw])


def test_input_that_pauses_keeps_its_progress() -> None:
    chain = derivative_chain()
    a, b = step_event(TAIL).query_inputs
    chain.add(step_event(TAIL, query_inputs=(replace(a, new_block_hash=None, new_offset=None), b)))
    chain.add(step_event(TAIL + 1, query_inputs=(a, step(INPUT_B, TAIL, None))))
    chain.add(step_event(TAIL + 2, query_inputs=(step(INPUT_A, TAIL, None), step(INPUT_B, TAIL, TAIL + 1))))
    verifier = warmed(chain)
    assert (verifier.state, []) == state_of((block.raw for block in chain.blocks), Strictness.OWN)


def test_watermark_that_disappears_is_rejected() -> None:
    without = [data_event(n, new_watermark=None) for n in range(3)]
    chain = ChainBuilder.root(schema(), *without, *map(data_event, range(3, TAIL)))
    assert_rejected(chain, chain.next(data_event(TAIL, new_watermark=None)).raw, "CHAIN-24")


def test_watermark_and_checkpoint_that_stay_are_rejected() -> None:
    chain = ChainBuilder.root(*(AddData(new_watermark=later(n)) for n in range(TAIL)))
    assert_rejected(chain, chain.next(AddData(new_watermark=later(TAIL - 1))).raw, "CHAIN-14")


def test_watermark_between_the_last_and_the_highest_is_reported() -> None:
    chain = root_chain()
    chain.add(data_event(TAIL, new_watermark=later(1)), data_event(TAIL + 1, new_watermark=later(2)))
    verifier = warmed(chain, Strictness.FOREIGN)
    assert (verifier.state, verifier.warnings) == state_of((b.raw for b in chain.blocks), Strictness.FOREIGN)
    assert verifier.warning_count == 2


def test_source_state_that_is_not_text_is_rejected() -> None:
    chain = root_chain()
    raw = chain.next(data_event(TAIL)).raw
    assert raw.count(b"006\0") == 1
    verifier = warmed(chain)
    raw = raw.replace(b"006\0", b"\xff06\0")
    with pytest.raises(MalformedError, match=r"SourceState\.value"):
        verifier.verify([raw])


@pytest.mark.parametrize(
    ("day", "second", "nanosecond"),
    [(0, 0, 0), (367, 0, 0), (1, 86_400, 0), (1, 0, 1_000_000_000)],
    ids=["day-0", "day-367", "second-too-large", "nanosecond-too-large"],
)
def test_watermark_that_is_no_time_is_rejected(day: int, second: int, nanosecond: int) -> None:
    chain = root_chain()
    event = data_event(TAIL)
    raw = chain.next(event).raw
    assert event.new_watermark is not None
    year, *parts = event.new_watermark.to_day_of_year()
    struct = year.to_bytes(4, "little") + bytes(parts[0].to_bytes(2, "little")) + b"\0\0"
    struct += parts[1].to_bytes(4, "little") + parts[2].to_bytes(4, "little")
    assert raw.count(struct) == 1
    wrong = (year + 1).to_bytes(4, "little") + day.to_bytes(2, "little") + b"\0\0"
    wrong += second.to_bytes(4, "little") + nanosecond.to_bytes(4, "little")
    verifier = warmed(chain)
    raw = raw.replace(struct, wrong)
    with pytest.raises(MalformedError, match=r"AddData\.new_watermark"):
        verifier.verify([raw])


def test_last_day_of_a_leap_year_is_accepted() -> None:
    chain = root_chain()
    block = chain.next(data_event(TAIL), system_time=later(365 * 86_400))
    assert block.system_time.to_day_of_year()[:2] == (2024, 366)
    verifier = warmed(chain)
    verifier.verify([block.raw])
    assert verifier.state is not None
    assert verifier.state.system_time == block.system_time
