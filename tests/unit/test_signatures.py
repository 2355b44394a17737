import base64

import pytest

from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.signatures import (
    Purpose,
    SignedDocument,
    public_key_of,
    sign,
    sign_block,
    sign_bytes,
    sign_document,
    verify,
    verify_block_signature,
    verify_bytes,
)
from support.signing import DATASET_KEY, OTHER_KEY, dataset_of, did_key_of, some_hash

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
PUBLIC = public_key_of(DATASET_KEY)


def test_rfc_8032_vectors_hold() -> None:
    private = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    signature = sign_bytes(private, b"\x72")
    assert public_key_of(private).hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert signature.hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    verify_bytes(public_key_of(private), b"\x72", signature)


def test_signature_holds_for_its_key_purpose_and_payload_only() -> None:
    signature = sign(DATASET_KEY, Purpose.HEAD, b"payload")
    verify(PUBLIC, Purpose.HEAD, b"payload", signature)
    for key, purpose, payload in (
        (public_key_of(OTHER_KEY), Purpose.HEAD, b"payload"),
        (PUBLIC, Purpose.KEY_EVENT, b"payload"),
        (PUBLIC, Purpose.HEAD, b"payload."),
        (PUBLIC, Purpose.HEAD, b""),
    ):
        with pytest.raises(RejectedError, match="SIG-1"):
            verify(key, purpose, payload, signature)


def test_every_flipped_bit_of_a_signature_is_rejected() -> None:
    signature = sign(DATASET_KEY, Purpose.HEAD, b"payload")
    for bit in range(512):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RejectedError):
            verify(PUBLIC, Purpose.HEAD, b"payload", bytes(flipped))


def test_signed_bytes_are_what_the_specification_says() -> None:
    expected = b"odf-node-signature-v1\x00" + b"\x04head" + (7).to_bytes(8, "little") + b"payload"
    verify_bytes(PUBLIC, expected, sign(DATASET_KEY, Purpose.HEAD, b"payload"))


def test_second_spelling_of_the_scalar_is_rejected() -> None:
    signature = sign(DATASET_KEY, Purpose.HEAD, b"payload")
    scalar = int.from_bytes(signature[32:], "little")
    twin = signature[:32] + (scalar + L).to_bytes(32, "little")
    with pytest.raises(RejectedError, match="SIG-11"):
        verify(PUBLIC, Purpose.HEAD, b"payload", twin)


@pytest.mark.parametrize("length", [0, 31, 33, 63, 65, 128])
def test_other_lengths_are_rejected(length: int) -> None:
    with pytest.raises(RejectedError, match="SIG-8"):
        verify(bytes(length), Purpose.HEAD, b"", bytes(64))
    with pytest.raises(RejectedError, match="SIG-8"):
        verify(PUBLIC, Purpose.HEAD, b"", bytes(length))


def small_order_points() -> list[bytes]:
    """All encodings, also the second ones, of the points whose order divides 8, computed from the curve's equation."""
    d = -121665 * pow(121666, -1, P) % P
    root_of_minus_1 = pow(2, (P - 1) // 4, P)

    # Points of order 8 double to y = 0, which gives d * y**4 + 2 * y**2 - 1 = 0.
    def square_root(n: int) -> int | None:
        root = pow(n, (P + 3) // 8, P)
        for candidate in (root, root * root_of_minus_1 % P):
            if candidate * candidate % P == n % P:
                return candidate
        return None

    ys = {0, 1, P - 1}
    discriminant = square_root(1 + d)
    assert discriminant is not None
    for sign_of_root in (1, -1):
        y = square_root((-1 + sign_of_root * discriminant) * pow(d, -1, P) % P)
        if y is not None:
            ys |= {y, P - y}
    spellings = [y + k * P for y in ys for k in (0, 1) if y + k * P < 2**255]
    return [(y | top << 255).to_bytes(32, "little") for y in spellings for top in (0, 1)]


def test_points_of_small_order_are_rejected_as_key_and_as_commitment() -> None:
    points = small_order_points()
    assert len(points) == 14
    signature = sign(DATASET_KEY, Purpose.HEAD, b"payload")
    for point in points:
        with pytest.raises(RejectedError, match="SIG-9"):
            verify(point, Purpose.HEAD, b"payload", signature)
        with pytest.raises(RejectedError, match="SIG-10"):
            verify(PUBLIC, Purpose.HEAD, b"payload", point + signature[32:])


def test_signature_that_would_fit_any_message_is_rejected() -> None:
    # With the neutral element as key and R, S = 0 satisfies the equation whatever the message.
    neutral = (1).to_bytes(32, "little")
    with pytest.raises(RejectedError, match="SIG-9"):
        verify_bytes(neutral, b"anything", neutral + bytes(32))


def test_key_that_is_no_point_of_the_curve_is_rejected() -> None:
    with pytest.raises(RejectedError):
        verify((2).to_bytes(32, "little"), Purpose.HEAD, b"", sign(DATASET_KEY, Purpose.HEAD, b""))


def test_block_signature_names_dataset_number_and_hash() -> None:
    dataset, other = dataset_of(DATASET_KEY), dataset_of(OTHER_KEY)
    signature = sign_block(DATASET_KEY, dataset, 7, some_hash("block"))
    verify_block_signature(signature, dataset, 7, some_hash("block"))
    for wrong in ((other, 7, some_hash("block")), (dataset, 8, some_hash("block")), (dataset, 7, some_hash("other"))):
        with pytest.raises(RejectedError, match="SIG-1") as caught:
            verify_block_signature(signature, *wrong)
        assert caught.value.sequence_number == wrong[1]


def test_block_signed_by_a_later_key_holds_under_that_key_only() -> None:
    dataset = dataset_of(DATASET_KEY)
    signature = sign_block(OTHER_KEY, dataset, 7, some_hash("block"))
    verify_block_signature(signature, dataset, 7, some_hash("block"), public_key=public_key_of(OTHER_KEY))
    with pytest.raises(RejectedError):
        verify_block_signature(signature, dataset, 7, some_hash("block"))


def test_signed_document_keeps_its_bytes() -> None:
    raw = sign_document(DATASET_KEY, Purpose.HEAD, b"payload").to_bytes()
    document = SignedDocument.decode(raw, Purpose.HEAD, max_payload_bytes=7)
    assert (document.payload, document.signer, document.to_bytes()) == (b"payload", did_key_of(DATASET_KEY), raw)


@pytest.mark.parametrize("size", [0, 96, 96 + 8])
def test_signed_document_of_another_size_is_rejected(size: int) -> None:
    with pytest.raises(MalformedError, match="97 to 103 bytes"):
        SignedDocument.decode(bytes(size), Purpose.HEAD, max_payload_bytes=7)


@pytest.mark.parametrize(
    ("input_hash", "output_hash", "proof"),
    [
        (
            "f16207ec84999fec29898a304aab4c4990bff33e455a409c0c2958894ecb87717dc6a",
            "f16208d66e08ce876ba35ce00ea56f02faf83dbc086f877c443e3d493427ccad133f1",
            "u5cFSKBj004FnB-e4dRajWz5q6loJDMMH-2_WwilhJarqBnwm0urFzZKVTk5OYzUMz75sukMjb5u8A--aR5tDg",
        ),
        (
            "f1620ef74430b1ad8916e80c148f7a9e8815ca702610a2655971b2f9852f00d5caa31",
            "f1620ff7f5beaf16900218a3ac4aae82cdccf764816986c7c739c716cf7dc03112a2c",
            "43jJXaMAJCmMzZ0SL2HBQloggw5PQzOnG7gCPTZAoJKCtAx-mrhSmqtWna676x3gm09_b0V7_Qb8zcca8nuABg",
        ),
    ],
)
def test_query_commitments_of_another_implementation_verify(input_hash: str, output_hash: str, proof: str) -> None:
    sub_queries = "f1620ca4510738395af1429224dd785675309c344b2b549632e20275c69b15ed1d210"
    commitment = f'{{"inputHash":"{input_hash}","outputHash":"{output_hash}","subQueriesHash":"{sub_queries}"}}'
    key = DidKey.parse("did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN")
    verify_bytes(key.public_key, commitment.encode(), base64.urlsafe_b64decode(proof + "=="))
    assert did_key_of(b"\x7b" * 32) == key
