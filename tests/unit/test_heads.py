import pytest

from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.heads import decode_signed_head, sign_head, verify_head
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, sign_document
from odf_protocol.timestamp import Timestamp
from support.key_logs import KeyLog
from support.signing import DATASET_KEY, NOON, OTHER_KEY, dataset_of, did_key_of, some_hash

DATASET = dataset_of(DATASET_KEY)
LATER = Timestamp(NOON.seconds + 60)


def head(expires: Timestamp | None = None, key: bytes = DATASET_KEY) -> bytes:
    return sign_head(
        key, dataset_id=DATASET, sequence_number=7, block_hash=some_hash("head"), time=NOON, expires=expires
    )


def signed(payload: bytes) -> bytes:
    return sign_document(DATASET_KEY, Purpose.HEAD, payload).to_bytes()


def test_head_says_what_was_signed_and_keeps_its_bytes() -> None:
    raw = head(expires=LATER)
    found = verify_head(raw, DATASET)
    assert (found.dataset_id, found.sequence_number, found.block_hash) == (DATASET, 7, some_hash("head"))
    assert (found.time, found.expires, found.signer, found.raw) == (NOON, LATER, did_key_of(DATASET_KEY), raw)


def test_signing_the_same_head_again_gives_the_same_bytes() -> None:
    assert head() == head()


def test_any_flipped_byte_is_rejected() -> None:
    raw = head()
    for position in range(len(raw)):
        broken = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises((RejectedError, MalformedError)):
            verify_head(broken, DATASET)


def test_head_of_another_dataset_is_rejected() -> None:
    with pytest.raises(RejectedError, match="HEAD-4 head-of-this-dataset"):
        verify_head(head(), dataset_of(OTHER_KEY))


def test_head_by_another_key_is_rejected_unless_that_key_is_in_force() -> None:
    raw = head(key=OTHER_KEY)
    with pytest.raises(RejectedError, match="HEAD-4 signed-by-the-dataset-key"):
        verify_head(raw, DATASET)
    keys = KeyLog(DATASET_KEY).rotate(OTHER_KEY, 7).history
    assert verify_head(raw, DATASET, keys=keys).signer == did_key_of(OTHER_KEY)
    with pytest.raises(RejectedError, match="KEY-5 head-is-by-the-key-in-force"):
        verify_head(head(), DATASET, keys=keys)


def test_head_expires_at_the_moment_it_names() -> None:
    found = decode_signed_head(head(expires=LATER))
    assert not found.is_expired(NOON)
    assert found.is_expired(LATER)
    assert not decode_signed_head(head()).is_expired(LATER)


def test_expiry_before_signing_is_our_mistake_and_rejected_from_others() -> None:
    with pytest.raises(ValueError, match="HEAD-3"):
        head(expires=NOON)
    payload = decode_payload(head(expires=LATER)).replace(str(LATER).encode(), str(NOON).encode())
    with pytest.raises(RejectedError, match="HEAD-3"):
        decode_signed_head(signed(payload))


def decode_payload(raw: bytes) -> bytes:
    return raw[96:]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version":1', b'"version":2'),
        (b'"type":"head"', b'"type":"block"'),
        (b'"sequenceNumber":7', b'"sequenceNumber":-7'),
        (b'"sequenceNumber":7', b'"sequenceNumber":7.0'),
        (b"did:odf:f", b"did:odf:F"),
        (b"12:00:00Z", b"12:00:00+00:00"),
        (b"f1620", b"F1620"),
        (b"{", b'{"a":1,'),
    ],
)
def test_well_signed_nonsense_is_rejected(old: bytes, new: bytes) -> None:
    payload = decode_payload(head()).replace(old, new, 1)
    with pytest.raises(MalformedError):
        decode_signed_head(signed(payload))


def test_block_hash_of_another_kind_is_rejected() -> None:
    with pytest.raises(ValueError, match="HEAD-2"):
        sign_head(DATASET_KEY, dataset_id=DATASET, sequence_number=0, block_hash=Multihash(0x12, bytes(32)), time=NOON)


def test_signature_of_a_head_is_no_signature_of_anything_else() -> None:
    raw = sign_document(DATASET_KEY, Purpose.KEY_EVENT, decode_payload(head())).to_bytes()
    with pytest.raises(RejectedError, match="SIG-1"):
        decode_signed_head(raw)
