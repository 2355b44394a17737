"""Signed requests: the RFC's own vector, and everything that is rejected before a key is looked at (EX-50, EX-52)."""

import base64

import pytest

from odf_protocol.errors import MalformedError
from odf_protocol.http_signatures import (
    CONTENT_DIGEST,
    REQUIRED,
    content_digest,
    decode_signature,
    encode_fields,
    encode_parameters,
    signature_base,
)
from odf_protocol.signatures import sign_bytes, verify_bytes

# Source: RFC 9421 appendices B.1.4 (test-key-ed25519) and B.2.6.
RFC_SEED = base64.urlsafe_b64decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU=")
RFC_PUBLIC_KEY = base64.urlsafe_b64decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs=")
RFC_COMPONENTS = ("date", "@method", "@path", "@authority", "content-type", "content-length")
RFC_VALUES = {
    "date": "Tue, 20 Apr 2021 02:07:55 GMT",
    "@method": "POST",
    "@path": "/foo",
    "@authority": "example.com",
    "content-type": "application/json",
    "content-length": "18",
}
RFC_PARAMETERS = (
    '("date" "@method" "@path" "@authority" "content-type" "content-length")'
    ';created=1618884473;keyid="test-key-ed25519"'
)
RFC_SIGNATURE = base64.b64decode(
    "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
)

VALUES = {"@method": "GET", "@authority": "node.example", "@path": "/a", "@query": "?"}
PARAMETERS = encode_parameters(REQUIRED, key_id="did:key:z6Mk", created_s=1_600_000_000, nonce="once")
FIELDS = encode_fields(PARAMETERS, bytes(64))


def test_vector_of_the_rfc_is_signed_and_verified() -> None:
    base = signature_base(RFC_VALUES, RFC_COMPONENTS, RFC_PARAMETERS)
    assert sign_bytes(RFC_SEED, base) == RFC_SIGNATURE
    verify_bytes(RFC_PUBLIC_KEY, base, RFC_SIGNATURE)


def test_what_is_written_is_read() -> None:
    read = decode_signature(FIELDS["Signature-Input"], FIELDS["Signature"])
    assert (read.components, read.parameters) == (REQUIRED, PARAMETERS)
    assert (read.key_id, read.created_s, read.nonce, read.signature) == (
        "did:key:z6Mk",
        1_600_000_000,
        "once",
        bytes(64),
    )


def test_base_is_one_line_for_each_component() -> None:
    assert signature_base(VALUES, REQUIRED, PARAMETERS).decode().splitlines() == [
        '"@method": GET',
        '"@authority": node.example',
        '"@path": /a',
        '"@query": ?',
        f'"@signature-params": {PARAMETERS}',
    ]


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "ü", None])
def test_value_that_could_be_taken_for_another_line_is_rejected(value: str | None) -> None:
    values = {name: text for name, text in (VALUES | {"@path": value}).items() if text is not None}
    with pytest.raises(MalformedError, match="@path"):
        signature_base(values, REQUIRED, PARAMETERS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"@query"', '"@query" "date"'),
        (' "@query"', ""),
        ('"@query"', '"@query" "@query"'),
        ('"@query"', '"@query";req'),
        ('alg="ed25519"', 'alg="hmac-sha256"'),
        ('tag="odf-node"', 'tag="other"'),
        (';tag="odf-node"', ""),
        (";nonce=", ';expires=1600000001;nonce="x";nonce2='),
        ('nonce="once"', 'nonce="once";nonce="again"'),
        ("created=1600000000", 'created="1600000000"'),
        ("created=1600000000", "created=-1"),
        ("created=1600000000", "created=1600000000.5"),
        ("node=", "Node="),
        ("node=", "node= "),
        ('tag="odf-node"', 'tag="odf-node", other=("@method")'),
        ('nonce="once"', 'nonce="' + "x" * 3000 + '"'),
        ('nonce="once"', 'nonce="a\\"b"'),
        ('nonce="once"', "nonce=once"),
    ],
)
def test_other_signature_input_is_rejected(old: str, new: str) -> None:
    changed = FIELDS["Signature-Input"].replace(old, new, 1)
    assert changed != FIELDS["Signature-Input"]
    with pytest.raises(MalformedError):
        decode_signature(changed, FIELDS["Signature"])


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "node=::",
        FIELDS["Signature"].replace("node=", "other="),
        FIELDS["Signature"] + ", b=:AA==:",
        "node=:" + "A" * 86,
    ],
)
def test_other_signature_is_rejected(signature: str) -> None:
    with pytest.raises(MalformedError):
        decode_signature(FIELDS["Signature-Input"], signature)


def test_digest_of_a_body_is_that_of_the_rfc() -> None:
    # Source: RFC 9530 appendix D, '{"hello": "world"}' and a newline.
    assert content_digest(b'{"hello": "world"}\n') == "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
    assert CONTENT_DIGEST == "content-digest"
