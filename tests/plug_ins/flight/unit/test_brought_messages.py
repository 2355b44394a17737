"""Clause FLIGHT-14: what a client brings is followed however it is cut, and packed messages are seen."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_flight.brought_messages import (
    DATA,
    END_STREAM,
    MAX_STREAMS,
    PADDED,
    PREFACE,
    RST_STREAM,
    BroughtMessages,
)

HEADERS, PING = 0x1, 0x6


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def message(payload: bytes, packed: int = 0) -> bytes:
    return bytes([packed]) + len(payload).to_bytes(4) + payload


def data_frames(stream: int, raw: bytes, cuts: list[int], padding: int = 0) -> list[bytes]:
    places = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    parts = [raw[start:end] for start, end in pairwise(places)]
    if padding:
        return [frame(DATA, stream, bytes([padding]) + part + b"\1" * padding, PADDED) for part in parts]
    return [frame(DATA, stream, part) for part in parts]


def feed(raw: bytes, seed: int) -> str | None:
    """Bring bytes in random pieces; the first fault that was found."""
    brought, chance, at = BroughtMessages(), random.Random(seed), 0
    while at < len(raw):
        count = chance.choice([1, 2, 7, 100, 5000])
        if (fault := brought.find_fault(raw[at : at + count])) is not None:
            return fault
        at += count
    return None


payloads = st.lists(st.binary(max_size=40), min_size=1, max_size=4)


@given(payloads, payloads, st.lists(st.integers(0, 80)), st.integers(0, 9), st.integers(0, 9))
def test_messages_of_several_streams_pass_however_they_are_cut(first, second, cuts, padding, seed) -> None:
    one = data_frames(1, b"".join(map(message, first)), cuts, padding)
    other = data_frames(3, b"".join(map(message, second)), cuts)
    mixed = [each for pair in zip(one, other, strict=False) for each in pair]
    mixed += one[len(other) :] + other[len(one) :]
    raw = PREFACE + frame(4, 0) + frame(HEADERS, 1, b"\1" * 30) + b"".join(mixed) + frame(PING, 0, b"\1" * 8)
    assert feed(raw, seed) is None


@given(payloads, st.integers(1, 255), st.lists(st.integers(0, 80)), st.integers(0, 9), st.integers(0, 9))
def test_packed_message_is_seen_wherever_it_stands(before, packed, cuts, padding, seed) -> None:
    raw = b"".join(map(message, before)) + message(b"swells", packed) + message(b"more")
    assert feed(PREFACE + b"".join(data_frames(1, raw, cuts, padding)), seed) == "packed messages"


@given(st.binary(max_size=300), st.integers(0, 9))
def test_noise_behind_the_preface_is_a_fault_or_none(noise: bytes, seed: int) -> None:
    assert feed(PREFACE + noise, seed) in {None, "packed messages", "streams"}


@pytest.mark.parametrize("raw", [b"GET / HTTP/1.1\r\n\r\n", PREFACE[:-1] + b"x", b"\x16\x03\x01"])
def test_other_protocols_are_ended(raw: bytes) -> None:
    assert feed(raw, 1) == "no HTTP/2"


@pytest.mark.parametrize("end", [frame(RST_STREAM, 1, bytes(4)), frame(DATA, 1, b"", END_STREAM)])
def test_stream_that_ends_is_forgotten_and_others_are_bounded(end: bytes) -> None:
    half = message(b"ab")[:-1]
    brought = BroughtMessages()
    assert brought.find_fault(PREFACE + (frame(DATA, 1, half) + end) * (2 * MAX_STREAMS)) is None
    opened = b"".join(frame(DATA, 2 * number + 1, half) for number in range(MAX_STREAMS))
    assert brought.find_fault(opened) is None
    assert brought.find_fault(frame(DATA, 2 * MAX_STREAMS + 1, half)) == "streams"
