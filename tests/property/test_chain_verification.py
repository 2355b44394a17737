"""CHAIN-50: verifying many blocks has the outcome of judging them one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_protocol.block import decode_block
from odf_protocol.block_traits import traits_of
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.verify import MAX_WARNINGS, ChainVerifier
from odf_protocol.errors import OdfError
from odf_protocol.events import AddData, Checkpoint, ExecuteTransform, ExecuteTransformInput, SetInfo, SourceState
from odf_protocol.timestamp import Timestamp
from support.chains import (
    INPUT_A,
    INPUT_B,
    ChainBuilder,
    add_rows,
    hash_of,
    later,
    ordinary_derivative_events,
    ordinary_root_events,
)


@dataclass(frozen=True)
class Outcome:
    hashes: tuple[bytes, ...]
    state: ChainState | None
    warnings: tuple[str, ...]
    error: tuple[type[BaseException], str] | None


def one_by_one(raws: Sequence[bytes], strictness: Strictness) -> Outcome:
    state, hashes, warnings = None, [], []
    for raw in raws:
        try:
            block = decode_block(raw, expected_hash=None)
            state, found = append(state, block, strictness=strictness)
        except OdfError as error:
            return Outcome(tuple(hashes), state, tuple(warnings), (type(error), str(error)))
        hashes.append(block.hash.digest)
        warnings += map(str, found)
    return Outcome(tuple(hashes), state, tuple(warnings), None)


def at_once(raws: Sequence[bytes], strictness: Strictness) -> Outcome:
    verifier = ChainVerifier(None, strictness=strictness)
    hashes: list[bytes] = []

    def noting() -> None:
        for raw in raws:
            found = verifier.take(raw)
            hashes.append(found.digest)
            assert found.traits == traits_of(decode_block(raw, expected_hash=None).event)

    error = None
    try:
        noting()
    except OdfError as caught:
        error = (type(caught), str(caught))
    assert verifier.warning_count == len(verifier.warnings)
    return Outcome(tuple(hashes), verifier.state, tuple(map(str, verifier.warnings)), error)


def assert_agreement(raws: Sequence[bytes]) -> None:
    for strictness in Strictness:
        assert at_once(raws, strictness) == one_by_one(raws, strictness)


CHAINS = {
    (kind, version): [block.raw for block in chain.blocks]
    for version in (2, 3)
    for kind, chain in (
        ("root", ChainBuilder(version=version)),
        ("derivative", ChainBuilder(version=version)),
    )
    for chain in [
        ChainBuilder.root(*ordinary_root_events(8))
        if kind == "root"
        else ChainBuilder.derivative(*ordinary_derivative_events(8))
    ]
}


@pytest.mark.parametrize("key", CHAINS, ids=str)
def test_ordinary_chain_is_accepted_with_the_same_state(key: tuple[str, int]) -> None:
    assert_agreement(CHAINS[key])
    assert at_once(CHAINS[key], Strictness.OWN).error is None


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


checkpoints = st.sampled_from(["a", "b"]).map(hash_of)
times = st.builds(Timestamp, st.integers(later(0).seconds, later(40).seconds), st.sampled_from([0, 1]))
offsets = st.integers(0, 30)


@st.composite
def data_fields(draw: st.DrawFn, prev: int | None, count: int) -> dict[str, object]:
    """Fields of a data block that mostly continue rows up to ``prev``."""
    first = 0 if prev is None else prev + 1
    slice_ = add_rows(first + draw(st.sampled_from([0, 0, 0, 0, 1])), first + count).new_data
    return {
        "prev_offset": draw(st.sampled_from([prev, prev, prev, prev, None, 3])),
        "new_data": draw(st.sampled_from([slice_, slice_, None])),
        "prev_checkpoint": draw(st.sampled_from([None, None, None, hash_of("a"), hash_of("b")])),
        "new_checkpoint": draw(st.sampled_from([None, None, None, Checkpoint(physical_hash=hash_of("a"), size=1)])),
        "new_watermark": draw(maybe(times)),
    }


@st.composite
def root_chains(draw: st.DrawFn) -> list[bytes]:
    chain = ChainBuilder.root(*ordinary_root_events(2))
    chain.version = draw(st.sampled_from([2, 3]))
    prev: int | None = 19
    for n in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 9)) == 0:
            chain.add(SetInfo(description=str(n)))
            continue
        fields = draw(data_fields(prev, draw(st.integers(0, 3))))
        source = draw(st.sampled_from([None, "x", "y", "\u00e9"]))
        if source is not None:
            fields["new_source_state"] = SourceState(source_name="default", kind="odf/etag", value=source)
        event = AddData(**fields)  # type: ignore[arg-type]
        header = {} if draw(st.integers(0, 9)) else {"system_time": draw(times)}
        chain.blocks.append(chain.next(event, **header))
        prev = event.new_data.offset_interval.end if event.new_data else event.prev_offset
    return [block.raw for block in chain.blocks]


@st.composite
def derivative_chains(draw: st.DrawFn) -> list[bytes]:
    chain = ChainBuilder.derivative(*ordinary_derivative_events(2))
    prev: int | None = 19
    last: dict[object, tuple[object, int | None]] = {
        INPUT_A: (hash_of(f"{INPUT_A} 0"), 9),
        INPUT_B: (hash_of(f"{INPUT_B} 1"), 19),
    }
    for n in range(draw(st.integers(1, 6))):
        inputs = []
        for dataset_id in (INPUT_A, INPUT_B):
            block, offset = last[dataset_id]
            new_block = draw(st.sampled_from([None, hash_of(f"new {n}"), hash_of(f"new {n}"), block]))
            new_offset = draw(st.sampled_from([None, (offset or 0) + 1, (offset or 0) + 1, offset]))
            taken = (draw(st.sampled_from([block] * 9 + [None])), draw(st.sampled_from([offset] * 9 + [None])))
            inputs.append(
                ExecuteTransformInput(
                    dataset_id=dataset_id,
                    prev_block_hash=taken[0],  # type: ignore[arg-type]
                    prev_offset=taken[1],
                    new_block_hash=new_block,  # type: ignore[arg-type]
                    new_offset=new_offset,
                )
            )
            last[dataset_id] = (new_block or taken[0], taken[1] if new_offset is None else new_offset)
        if draw(st.integers(0, 9)) == 0:
            inputs.reverse()
        event = ExecuteTransform(query_inputs=tuple(inputs), **draw(data_fields(prev, 2)))  # type: ignore[arg-type]
        chain.add(event)
        prev = event.new_data.offset_interval.end if event.new_data else event.prev_offset
    return [block.raw for block in chain.blocks]


@given(root_chains())
def test_root_chain_of_any_blocks_has_the_same_outcome(raws: list[bytes]) -> None:
    assert_agreement(raws)


@given(derivative_chains())
def test_derivative_chain_of_any_blocks_has_the_same_outcome(raws: list[bytes]) -> None:
    assert_agreement(raws)


@given(st.data())
def test_damaged_bytes_have_the_same_outcome(data: st.DataObject) -> None:
    raws = list(CHAINS[data.draw(st.sampled_from(sorted(CHAINS)))])
    target = data.draw(st.integers(0, len(raws) - 1))
    damaged = bytearray(raws[target])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    raws[target] = bytes(damaged)
    assert_agreement(raws)


@given(st.data())
def test_blocks_lost_repeated_or_swapped_have_the_same_outcome(data: st.DataObject) -> None:
    raws = CHAINS[data.draw(st.sampled_from(sorted(CHAINS)))]
    assert_agreement(data.draw(st.lists(st.sampled_from(raws), max_size=12).map(lambda tail: raws[:6] + tail)))


def test_every_changed_byte_of_an_ordinary_block_has_the_same_outcome() -> None:
    raws = CHAINS["root", 3]
    for position in range(len(raws[7])):
        damaged = bytearray(raws[7])
        damaged[position] ^= 1
        assert at_once([*raws[:7], bytes(damaged)], Strictness.OWN) == one_by_one(
            [*raws[:7], bytes(damaged)], Strictness.OWN
        )


def test_warnings_are_counted_and_kept_up_to_a_limit() -> None:
    chain = ChainBuilder.root(*ordinary_root_events(1))
    for n in range(1, MAX_WARNINGS + 10):
        chain.add(add_rows(n * 10, n * 10 + 9, new_watermark=later(n % 2)))
    verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    verifier.verify(block.raw for block in chain.blocks)
    assert len(verifier.warnings) == MAX_WARNINGS
    assert verifier.warning_count > MAX_WARNINGS


def test_verification_continues_from_a_state() -> None:
    raws = CHAINS["derivative", 3]
    first = ChainVerifier(None, strictness=Strictness.OWN)
    first.verify(raws[:6])
    second = ChainVerifier(first.state, strictness=Strictness.OWN)
    second.verify(raws[6:])
    assert second.state == one_by_one(raws, Strictness.OWN).state


def test_state_after_a_rejected_block_is_that_before_it() -> None:
    raws = CHAINS["root", 3]
    verifier = ChainVerifier(None, strictness=Strictness.OWN)
    verifier.verify(raws[:6])
    before = verifier.state
    with pytest.raises(OdfError):
        verifier.verify([raws[7]])
    assert verifier.state == before
    verifier.verify(raws[6:])
    assert verifier.state == one_by_one(raws, Strictness.OWN).state
