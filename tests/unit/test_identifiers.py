"""What the vectors of ID-1 to ID-3 cannot say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_protocol.did import DatasetId, DidKey, parse_account_id
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.multibase import MAX_ENCODED_CHARACTERS, decode_multibase, encode_base58btc
from odf_protocol.multihash import MAX_DIGEST_BYTES, Multihash, decode_varint, encode_varint

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def test_long_text_is_rejected_before_it_is_decoded() -> None:
    """ID-1: base58 takes time that grows with the square of the length."""
    with pytest.raises(MalformedError, match=str(MAX_ENCODED_CHARACTERS)):
        decode_multibase("z" + "1" * 1_000_000)


@given(st.builds(lambda zeros, rest: bytes(zeros) + rest, st.integers(0, 3), st.binary(max_size=70)))
def test_base58_of_any_bytes_is_the_number_that_they_are_and_read_back(data: bytes) -> None:
    """ID-1."""
    text = encode_base58btc(data)
    number = 0
    for character in text[1:]:
        number = number * 58 + BASE58.index(character)
    zeros = len(data) - len(data.lstrip(b"\0"))
    assert (text[0], number) == ("z", int.from_bytes(data, "big"))
    assert text[1 : zeros + 1] == "1" * zeros
    assert text[zeros + 1 : zeros + 2] != "1"
    assert decode_multibase(text) == data


@pytest.mark.parametrize("text", ["z0", "zO", "zI", "zl", "z+", "z 1", "z1é", "z1\n", "z\u0661"])
def test_character_that_is_not_of_base58_is_malformed(text: str) -> None:
    """ID-1."""
    with pytest.raises(MalformedError, match="alphabet"):
        decode_multibase(text)


def test_hash_can_be_made_of_any_buffer() -> None:
    assert Multihash.of_sha3_256(memoryview(b"a")) == Multihash.of_sha3_256(bytearray(b"a"))


@pytest.mark.parametrize("length", [0, MAX_DIGEST_BYTES + 1])
def test_hash_of_another_length_cannot_be_made(length: int) -> None:
    """ID-2."""
    with pytest.raises(MalformedError, match="digest"):
        Multihash(0x1234, bytes(length))


def test_hash_of_unknown_kind_is_kept() -> None:
    value = Multihash(0x1234, b"ab")
    assert Multihash.parse(str(value)) == value


def test_dataset_and_key_are_not_equal_though_their_bytes_are() -> None:
    """ID-3."""
    key = bytes(range(32))
    assert DatasetId(key).to_bytes() == DidKey(key).to_bytes()
    assert DatasetId(key) != DidKey(key)
    assert len({DatasetId(key), DidKey(key)}) == 2


def test_cut_binary_id_is_malformed_and_other_keys_are_unsupported() -> None:
    with pytest.raises(MalformedError):
        DatasetId.decode(b"")
    with pytest.raises(MalformedError):
        DatasetId.decode(b"\xed\x01" + bytes(31))
    with pytest.raises(UnsupportedError, match="0xe7"):
        DatasetId.decode(b"\xe7\x01" + bytes(33))


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 0x300016, 2**63 - 1])
def test_varint_is_read_back(value: int) -> None:
    assert decode_varint(b"x" + encode_varint(value) + b"y", 1) == (value, 1 + len(encode_varint(value)))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\xff" * 9, b"\xff" * 20])
def test_varint_without_end_or_too_long_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError, match="varint"):
        decode_varint(data)


@pytest.mark.parametrize("value", [-1, 2**63])
def test_number_that_no_varint_holds_is_our_mistake(value: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        encode_varint(value)


@pytest.mark.parametrize(
    "text",
    [
        "did:pkh:eip155:1:0xb9c5714089478a327f09197987f16f9e5d936e8a",
        "did:pkh:solana:4sGjMW1sUnHzSxGspuhpqLDx6wiyjNtZ:CKg5d12Jhpej1JqtmxLJgaFqqeYjxgPqToJ4LBdvG9Ev",
        str(DatasetId(b"\x01" * 32)),
    ],
)
def test_account_is_an_address_on_a_chain_or_a_key(text: str) -> None:
    """ID-4."""
    assert str(parse_account_id(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "did:key:z6Mk",
        "did:pkh:eip155:1",
        "did:pkh:eip155:1:0x:1",
        "did:pkh:e:1:0xb9",
        "did:pkh:EIP155:1:0xb9",
        "did:pkh:eip155::0xb9",
        "did:pkh:eip155:1:0xb9\n",
        "did:pkh:eip155:1:" + "a" * 129,
    ],
)
def test_text_that_is_no_account_is_rejected(text: str) -> None:
    """ID-4."""
    with pytest.raises(MalformedError):
        parse_account_id(text)
