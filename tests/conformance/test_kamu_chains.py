"""Chains of another implementation: read to the last byte, accepted by every rule that binds them."""

import pytest

from odf_protocol.block import encode_block
from odf_protocol.chain import Strictness, append
from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.events import DatasetKind
from support.kamu import DATASETS, KAMU, read_chain


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_block_encodes_to_the_same_bytes(dataset: str) -> None:
    for block in read_chain(dataset):
        again = encode_block(
            block.event,
            system_time=block.system_time,
            prev_block_hash=block.prev_block_hash,
            sequence_number=block.sequence_number,
            version=block.version,
        )
        assert again == block.raw


@pytest.mark.parametrize("dataset", DATASETS)
def test_chain_is_accepted(dataset: str) -> None:
    state, warnings = None, []
    for block in read_chain(dataset):
        state, found = append(state, block, strictness=Strictness.FOREIGN)
        warnings += map(str, found)
        assert decode_state(encode_state(state)) == state
    # Also of changelog.orders, whose source makes the operation optional (CHAIN-45).
    assert warnings == []


@pytest.mark.parametrize("dataset", DATASETS)
def test_fast_verification_agrees(dataset: str) -> None:
    blocks = read_chain(dataset)
    verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    assert verifier.verify(block.raw for block in blocks) == [block.hash.digest for block in blocks]
    state = None
    for block in blocks:
        state, _warnings = append(state, block, strictness=Strictness.FOREIGN)
    assert verifier.state == state


def test_every_block_on_disk_belongs_to_a_chain() -> None:
    on_disk = {path.name for path in KAMU.glob("datasets/*/blocks/*")}
    assert on_disk == {str(block.hash) for dataset in DATASETS for block in read_chain(dataset)}


def test_state_tells_what_the_chain_says() -> None:
    state = None
    for block in read_chain("countries.deadliest"):
        state, _warnings = append(state, block, strictness=Strictness.OWN)
    assert state is not None
    assert state.kind is DatasetKind.DERIVATIVE
    assert (state.sequence_number, state.next_offset) == (3, 9418)
    assert [item.offset for item in state.inputs] == [55533]
    assert str(state.watermark) == "2020-10-31T00:00:00Z"
