"""JSON messages, ranges and conditions of the exchange (EX-5, EX-6, EX-10)."""

import pytest

from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import MAX_JSON_BYTES
from odf_protocol.exchange.messages import (
    HeadAnswer,
    HeadMessage,
    NodeInfo,
    PushRequest,
    decode_message,
    encode_message,
)
from odf_protocol.exchange.object_parts import (
    ByteRange,
    UnsatisfiableRangeError,
    find_content_range,
    find_range,
    matches_etag,
)
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

HASH = Multihash.of_sha3_256(b"block")
REQUEST = PushRequest(
    dataset_id=str(DatasetId(bytes(32))),
    name="demo",
    head=HeadMessage.of(Head(3, HASH)),
    signed_head=b"\x00\xff",
)


def test_message_is_written_in_one_form_and_read_back() -> None:
    body = encode_message(REQUEST)
    assert body == (
        b'{"dataset_id":"'
        + REQUEST.dataset_id.encode()
        + b'","head":{"block_hash":"'
        + str(HASH).encode()
        + b'","sequence_number":3},"name":"demo","signed_head":"AP8="}'
    )
    assert decode_message(body, PushRequest) == REQUEST


def test_request_with_an_unknown_field_is_rejected() -> None:
    body = encode_message(REQUEST).replace(b'"name"', b'"force":true,"name"')
    with pytest.raises(MalformedError, match="force"):
        decode_message(body, PushRequest)


def test_answer_with_an_unknown_field_is_read() -> None:
    body = b'{"node_id":null,"software":"x","protocol_versions":[1,2],"takes_pushes":false,"mood":"good"}'
    assert decode_message(body, NodeInfo).protocol_versions == (1, 2)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((b'"sequence_number":3', b'"sequence_number":-1'), id="negative-number"),
        pytest.param((b'"sequence_number":3', b'"sequence_number":9223372036854775808'), id="number-too-large"),
        pytest.param((b'"sequence_number":3', b'"sequence_number":"3"'), id="number-as-text"),
        pytest.param((b'"name":"demo"', b'"name":""'), id="empty-name"),
        pytest.param((b"f1620", b"f1621"), id="no-hash"),
        pytest.param((b"did:odf:", b"did:key:"), id="another-kind-of-identity"),
        pytest.param((b"AP8=", b"not base64!"), id="not-base64"),
        pytest.param((b"}", b""), id="cut"),
    ],
)
def test_message_that_breaks_its_form_is_rejected(change: tuple[bytes, bytes]) -> None:
    with pytest.raises(MalformedError):
        decode_message(encode_message(REQUEST).replace(*change, 1), PushRequest)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 200_000, id="deep"),
        pytest.param(b'{"x":' * 200_000, id="deep-in-an-unknown-field"),
        pytest.param(b"\xff\xfe", id="not-utf8"),
        pytest.param(b" " * (MAX_JSON_BYTES + 1), id="too-large"),
    ],
)
def test_hostile_json_is_rejected(body: bytes) -> None:
    with pytest.raises(MalformedError):
        decode_message(body, HeadAnswer)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-9", (0, 10)),
        ("bytes=90-", (90, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        ("bytes=50-1000", (50, 100)),
        ("Bytes=0-0", (0, 1)),
        (None, None),
        ("bytes=0-1,5-6", None),
        ("lines=0-1", None),
        ("bytes=-", None),
        ("bytes=9-3", None),
        ("bytes=" + "9" * 30 + "-", None),
        ("nonsense", None),
    ],
)
def test_range_is_the_part_that_is_meant_or_the_whole(header: str | None, expected: tuple[int, int] | None) -> None:
    found = find_range(header, 100)
    assert (None if found is None else (found.start, found.end)) == expected


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=200-300", "bytes=-0"])
def test_range_beyond_the_end_cannot_be_satisfied(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        find_range(header, 100)


def test_content_range_is_read_as_it_is_written() -> None:
    part = ByteRange(5, 10, 100)
    assert part.content_range == "bytes 5-9/100"
    assert find_content_range(part.content_range) == part
    assert find_content_range("bytes 5-9/*") == ByteRange(5, 10, None)
    assert find_content_range("bytes */100") is None
    assert find_content_range(None) is None


def test_condition_names_an_etag_weak_or_strong_among_others_or_any() -> None:
    assert matches_etag('"a"', "a")
    assert matches_etag('"b", W/"a"', "a")
    assert matches_etag("*", "a")
    assert not matches_etag('"ab"', "a")
    assert not matches_etag(None, "a")
