import msgspec
import pytest

from odf_protocol.canonical_json import (
    MAX_SAFE_INTEGER,
    Count,
    Document,
    ShortText,
    decode_canonical,
    encode_canonical,
    parse_exact,
)
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp


class Note(Document, frozen=True, kw_only=True):
    text_of_note: ShortText
    count: Count = 0
    labels: dict[str, int] = msgspec.field(default_factory=dict)
    data: bytes = b""


def decode(raw: bytes) -> Note:
    return decode_canonical(raw, Note, what="note", max_bytes=1000)


def test_keys_are_sorted_and_nothing_is_spaced_or_escaped_without_need() -> None:
    note = Note(
        text_of_note='é\u2028\U0001f600"\\/\x7f\n\x1f', count=MAX_SAFE_INTEGER, labels={"z": 1, "a": -2}, data=b"xyz"
    )
    raw = encode_canonical(note)
    text = '"é\u2028\U0001f600\\"\\\\/\x7f\\n\\u001f"'
    assert raw.decode() == f'{{"count":9007199254740991,"data":"eHl6","labels":{{"a":-2,"z":1}},"textOfNote":{text}}}'
    assert decode(raw) == note


def test_keys_of_maps_are_sorted_by_code_point() -> None:
    raw = encode_canonical(Note(text_of_note="x", labels={"\U0001f600": 1, "\uffff": 2, "B": 3, "a": 4}))
    assert raw.decode() == '{"labels":{"B":3,"a":4,"\uffff":2,"\U0001f600":1},"textOfNote":"x"}'


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'{"textOfNote":"x","textOfNote":"x"}', id="repeated-key"),
        pytest.param(b'{"labels":{"a":1,"a":1},"textOfNote":"x"}', id="repeated-key-inside"),
        pytest.param(b'{"textOfNote":"\\u0041"}', id="needless-escape"),
        pytest.param(b'{"textOfNote":"\\/"}', id="escaped-slash"),
        pytest.param(b'{"textOfNote":"\\ud800"}', id="lone-surrogate"),
        pytest.param(b'{"textOfNote":"\xff"}', id="not-utf-8"),
        pytest.param(b'{"textOfNote": "x"}', id="space"),
        pytest.param(b'{"textOfNote":"x"}\n', id="newline-at-end"),
        pytest.param(b'\xef\xbb\xbf{"textOfNote":"x"}', id="byte-order-mark"),
        pytest.param(b'{"textOfNote":"x","count":1}', id="keys-out-of-order"),
        pytest.param(b'{"count":0,"textOfNote":"x"}', id="default-spelled-out"),
        pytest.param(b'{"count":1.0,"textOfNote":"x"}', id="float"),
        pytest.param(b'{"count":1e2,"textOfNote":"x"}', id="exponent"),
        pytest.param(b'{"count":-0,"textOfNote":"x"}', id="minus-zero"),
        pytest.param(b'{"count":9007199254740992,"textOfNote":"x"}', id="integer-too-large"),
        pytest.param(b'{"count":"1","textOfNote":"x"}', id="number-as-text"),
        pytest.param(b'{"count":null,"textOfNote":"x"}', id="null"),
        pytest.param(b'{"data":"eHl6=","textOfNote":"x"}', id="base64-padding"),
        pytest.param(b'{"data":"eHm=","textOfNote":"x"}', id="base64-loose-bits"),
        pytest.param(b'{"textOfNote":"x","unknown":1}', id="unknown-key"),
        pytest.param(b'{"textOfNote":""}', id="empty-text"),
        pytest.param(b"{}", id="missing-key"),
        pytest.param(b'[{"textOfNote":"x"}]', id="not-an-object"),
        pytest.param(b"[" * 1000, id="deep"),
        pytest.param(b'{"textOfNote":"' + b"x" * 1000 + b'"}', id="too-long"),
        pytest.param(b"", id="empty"),
    ],
)
def test_bytes_that_the_encoder_would_not_write_are_rejected(raw: bytes) -> None:
    with pytest.raises(MalformedError, match="malformed note"):
        decode(raw)


def test_message_points_to_the_first_byte_that_is_not_canonical() -> None:
    with pytest.raises(MalformedError) as caught:
        decode(b'{"textOfNote": "x"}')
    assert caught.value.where == 14


def test_our_own_invalid_document_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="malformed Note"):
        encode_canonical(Note(text_of_note="", count=-1))


def test_documents_cannot_hold_floats() -> None:
    assert not any(field.type is float for field in msgspec.structs.fields(Note))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (DatasetId, "did:odf:FED01" + "ab" * 32),
        (Timestamp, "2024-05-01T12:00:00+00:00"),
        (Timestamp, "2024-05-01T12:00:00.0Z"),
    ],
)
def test_other_spelling_of_an_identifier_or_time_is_rejected(kind: type[DatasetId], text: str) -> None:
    kind.parse(text.replace("FED", "fed")) if kind is DatasetId else None
    with pytest.raises(MalformedError):
        parse_exact(kind, text, "value")
