"""What is kept of a chain between two blocks."""

import json

import pytest

from odf_protocol.chain import Strictness, append
from odf_protocol.chain.stored_state import decode_reads, decode_state, encode_state
from odf_protocol.errors import CorruptError
from odf_protocol.events import AddData, Event, SetDataSchema, SetVocab, SourceState
from support.chains import (
    INPUT_A,
    ChainBuilder,
    add_rows,
    checkpoint,
    hash_of,
    later,
    ordinary_derivative_events,
    ordinary_root_events,
    polling_source,
    push_source,
    schema,
    transform,
)

SOURCE_STATE = SourceState(source_name="default", kind="odf/etag", value='"é"')

CHAINS = {
    "seed": ChainBuilder.root(),
    "rows": ChainBuilder.root(*ordinary_root_events(2)),
    "steps": ChainBuilder.derivative(*ordinary_derivative_events(3)),
    "definition": ChainBuilder.derivative(transform(INPUT_A)),
    "push sources": ChainBuilder.root(push_source("a"), push_source("b")),
    "polling source": ChainBuilder.root(polling_source()),
    "arrow schema": ChainBuilder.root(SetDataSchema(raw_arrow_schema=b"a")),
    "vocabulary": ChainBuilder.root(SetVocab(offset_column="n")),
    "checkpoint and source state": ChainBuilder.root(
        schema(), add_rows(0, 9, new_checkpoint=checkpoint("a"), new_source_state=SOURCE_STATE)
    ),
    "fallen watermark": ChainBuilder.root(schema(), add_rows(0, 9), add_rows(10, 19, new_watermark=later(1))),
}


@pytest.mark.parametrize("name", CHAINS)
def test_stored_state_is_read_back_equal(name: str) -> None:
    """CHAIN-51."""
    state = CHAINS[name].state()
    assert state is not None
    stored = encode_state(state)
    assert decode_state(stored) == state
    assert encode_state(decode_state(stored)) == stored


@pytest.mark.parametrize("name", CHAINS)
def test_what_a_chain_has_read_is_read_back_without_the_rest(name: str) -> None:
    state = CHAINS[name].state()
    assert state is not None
    reads = decode_reads(encode_state(state))
    assert reads.taken == state.progress_by_input()
    assert (reads.rows, reads.has_schema, reads.has_polling_source) == (
        state.next_offset,
        state.has_schema,
        state.has_polling_source,
    )
    with pytest.raises(CorruptError):
        decode_reads(encode_state(state)[:-1])


@pytest.mark.parametrize("events", [ordinary_root_events, ordinary_derivative_events])
def test_size_does_not_grow_with_the_chain(events: "type[Event]") -> None:
    build = ChainBuilder.root if events is ordinary_root_events else ChainBuilder.derivative
    short, long = build(*events(3)).state(), build(*events(103)).state()
    assert short is not None
    assert long is not None
    assert len(encode_state(long)) <= len(encode_state(short)) + 16  # longer numbers


def test_chain_continues_from_a_stored_state() -> None:
    chain = ChainBuilder.root(*ordinary_root_events(2))
    state = chain.state()
    assert state is not None
    block = chain.next(add_rows(20, 29))
    again, _warnings = append(decode_state(encode_state(state)), block, strictness=Strictness.OWN)
    assert (again, ()) == append(state, block, strictness=Strictness.OWN)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{}", id="empty"),
        pytest.param(b"\xff", id="not-text"),
        pytest.param(lambda stored: stored | {"format": 2}, id="another-format"),
        pytest.param(lambda stored: stored | {"kind": 7}, id="unknown-kind"),
        pytest.param(lambda stored: stored | {"more": 1}, id="unknown-field"),
        pytest.param(lambda stored: stored | {"head": "f16"}, id="cut-hash"),
        pytest.param(lambda stored: stored | {"sequence_number": "1"}, id="text-for-number"),
        pytest.param(lambda stored: stored | {"schema": "AAAA"}, id="not-a-schema"),
        pytest.param(lambda stored: stored | {"schema": "?"}, id="not-base64"),
    ],
)
def test_damaged_state_is_our_own_fault(data: object) -> None:
    if callable(data):
        state = CHAINS["rows"].state()
        assert state is not None
        data = json.dumps(data(json.loads(encode_state(state)))).encode()
    assert isinstance(data, bytes)
    with pytest.raises(CorruptError, match="stored chain state"):
        decode_state(data)


def test_last_offset_is_carried_over_blocks_without_rows() -> None:
    state = ChainBuilder.root(schema(), add_rows(0, 9), AddData(prev_offset=9, new_watermark=later(10))).state()
    assert state is not None
    assert (state.last_offset, state.next_offset) == (9, 10)


def test_highest_watermark_outlives_a_fall() -> None:
    state = CHAINS["fallen watermark"].state()
    assert state is not None
    assert (state.watermark, state.highest_watermark) == (later(1), later(9))


def test_checkpoint_is_that_of_the_last_data_block_only() -> None:
    chain = ChainBuilder.root(schema(), add_rows(0, 9, new_checkpoint=checkpoint("a")))
    state = chain.state()
    assert state is not None
    assert state.checkpoint == hash_of("a")
    state = chain.add(add_rows(10, 19, prev_checkpoint=hash_of("a"))).state()
    assert state is not None
    assert state.checkpoint is None
