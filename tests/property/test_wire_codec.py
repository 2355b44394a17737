"""The codec on every table of the schema, and the decoder on bytes of strangers."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odf_protocol.block import decode_block, encode_block
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import Event
from odf_protocol.events.declaration import union_kind_of
from odf_protocol.events.equality import means_the_same, with_defaults
from odf_protocol.multihash import Multihash
from support.kamu import DATASETS, read_chain
from support.wire_strategies import events, hashes, tables, timestamps

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
KNOWN_BLOCKS = sorted(
    {
        *(bytes.fromhex(case["bytes_hex"]) for case in json.loads((VECTORS / "blocks.json").read_text())["accepted"]),
        *(block.raw for dataset in DATASETS for block in read_chain(dataset)),
    },
    key=len,
)


def decode_or_reject(raw: bytes) -> None:
    """Decode; anything but the two declared errors fails the test."""
    with contextlib.suppress(MalformedError, UnsupportedError):
        decode_block(raw, expected_hash=None)


headers = st.fixed_dictionaries(
    {
        "system_time": timestamps,
        "prev_block_hash": st.none() | hashes,
        "sequence_number": st.integers(0, 2**64 - 1),
        "version": st.sampled_from([2, 3]),
    }
)


@pytest.mark.parametrize("event_type", union_kind_of(Event).members, ids=lambda event_type: event_type.__name__)
@given(data=st.data(), header=headers)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_block_is_decoded_to_what_was_encoded(
    event_type: type[Any], data: st.DataObject, header: dict[str, Any]
) -> None:
    """WIRE-14: and encoding what was decoded gives the same bytes."""
    event = data.draw(tables(event_type))
    raw = encode_block(event, **header)
    block = decode_block(raw, expected_hash=Multihash.of_sha3_256(raw))
    assert block.event == event
    assert {name: getattr(block, name) for name in header} == header
    assert encode_block(block.event, **header) == raw


@given(events)
def test_filling_in_defaults_changes_nothing_that_is_there_and_is_done_once(event: Event) -> None:
    filled = with_defaults(event)
    assert with_defaults(filled) == filled
    assert means_the_same(event, filled)
    assert means_the_same(filled, event)


@given(st.binary(max_size=200))
@example(b"")
@example(b"\0" * 64)
@example(b"\xff" * 64)
def test_random_bytes_are_rejected(raw: bytes) -> None:
    with pytest.raises((MalformedError, UnsupportedError)):
        decode_block(raw, expected_hash=None)


@given(data=st.data())
def test_changed_bytes_are_decoded_or_rejected_as_declared(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(KNOWN_BLOCKS)))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(raw) - 1))
        raw[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    decode_or_reject(bytes(raw))


@given(data=st.data())
def test_cut_and_moved_bytes_are_decoded_or_rejected_as_declared(data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(KNOWN_BLOCKS))
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, len(raw)))
    put = data.draw(st.integers(0, len(raw)))
    without = raw[:start] + raw[end:]
    decode_or_reject(without)
    decode_or_reject(without[:put] + raw[start:end] + without[put:])


@pytest.mark.parametrize("raw", KNOWN_BLOCKS[::8], ids=lambda raw: f"{len(raw)}-bytes")
def test_block_cut_anywhere_is_rejected(raw: bytes) -> None:
    for length in range(len(raw) - 8):  # up to eight bytes at the end are padding, which nothing reads
        with pytest.raises((MalformedError, UnsupportedError)):
            decode_block(raw[:length], expected_hash=None)


@pytest.mark.parametrize("raw", KNOWN_BLOCKS[::8], ids=lambda raw: f"{len(raw)}-bytes")
def test_block_with_any_byte_changed_has_another_hash(raw: bytes) -> None:
    """WIRE-2."""
    expected = Multihash.of_sha3_256(raw)
    for position in range(0, len(raw), 7):
        changed = bytearray(raw)
        changed[position] ^= 0x01
        with pytest.raises(MalformedError, match="expected hash"):
            decode_block(bytes(changed), expected_hash=expected)
