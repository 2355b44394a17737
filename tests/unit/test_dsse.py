import base64
import json

import pytest

from odf_protocol.dsse import decode_envelope, pre_authentication, sign_envelope
from odf_protocol.errors import MalformedError, RejectedError
from support.signing import DATASET_KEY, NODE_KEY, OTHER_KEY, add_signature, did_key_of

TYPE = "application/x-note"


def encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def test_pre_authentication_is_that_of_the_dsse_specification() -> None:
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pre_authentication("http://example.com/HelloWorld", b"hello world") == expected


def test_envelope_keeps_payload_and_bytes() -> None:
    raw = sign_envelope(NODE_KEY, TYPE, b'{"a": 1}')
    envelope = decode_envelope(raw, payload_type=TYPE)
    assert (envelope.payload, envelope.signers, envelope.raw) == (b'{"a": 1}', (did_key_of(NODE_KEY),), raw)


def test_several_parties_sign_one_payload() -> None:
    raw = sign_envelope(NODE_KEY, TYPE, b"payload")
    for key in (OTHER_KEY, DATASET_KEY, OTHER_KEY):
        raw = add_signature(raw, key)
    signers = decode_envelope(raw, payload_type=TYPE).signers
    assert signers == tuple(sorted(map(did_key_of, (NODE_KEY, OTHER_KEY, DATASET_KEY)), key=str))


def test_one_bad_signature_among_good_ones_spoils_the_envelope() -> None:
    parsed = json.loads(add_signature(sign_envelope(NODE_KEY, TYPE, b"payload"), OTHER_KEY))
    parsed["signatures"][0]["sig"] = parsed["signatures"][1]["sig"]
    with pytest.raises(RejectedError, match="SIG-1"):
        decode_envelope(encode(parsed), payload_type=TYPE)


def test_changed_payload_or_type_is_rejected() -> None:
    parsed = json.loads(sign_envelope(NODE_KEY, TYPE, b"payload"))
    changed = parsed | {"payload": base64.b64encode(b"Payload").decode()}
    with pytest.raises(RejectedError, match="SIG-1"):
        decode_envelope(encode(changed), payload_type=TYPE)
    with pytest.raises(RejectedError, match="SIG-1"):
        decode_envelope(encode(parsed | {"payloadType": "other"}), payload_type="other")
    with pytest.raises(RejectedError, match="DSSE-2"):
        decode_envelope(encode(parsed), payload_type="other")


def test_signers_out_of_order_or_twice_are_rejected() -> None:
    parsed = json.loads(add_signature(sign_envelope(NODE_KEY, TYPE, b"payload"), OTHER_KEY))
    one, two = parsed["signatures"]
    for signatures in ([two, one], [one, one]):
        with pytest.raises(RejectedError, match="DSSE-4"):
            decode_envelope(encode(parsed | {"signatures": signatures}), payload_type=TYPE)


@pytest.mark.parametrize("signatures", [[], "x", [{"sig": "", "keyid": "x"}]])
def test_envelope_without_proper_signatures_is_malformed(signatures: object) -> None:
    parsed = json.loads(sign_envelope(NODE_KEY, TYPE, b"payload")) | {"signatures": signatures}
    with pytest.raises(MalformedError):
        decode_envelope(encode(parsed), payload_type=TYPE)


def test_foreign_spelling_of_the_envelope_is_rejected() -> None:
    parsed = json.loads(sign_envelope(NODE_KEY, TYPE, b"payload"))
    with pytest.raises(MalformedError):
        decode_envelope(json.dumps(parsed).encode(), payload_type=TYPE)
    with pytest.raises(MalformedError):
        decode_envelope(encode(parsed | {"extra": 1}), payload_type=TYPE)
