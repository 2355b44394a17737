"""Decentralized identifiers: ``did:odf`` names a dataset, ``did:key`` a node or an auditor, ``did:pkh`` an account.

The first two are an Ed25519 public key and hold the same bytes, ``ed 01`` and the 32 of the key; ``did:odf`` is written
in base16, ``did:key`` in base58btc. The third is an address on some block chain, and nothing here looks into it.

Source: ODF "Dataset Identity"; did:key and did:pkh method specifications; CAIP-10.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.multibase import decode_multibase, encode_base16, encode_base58btc
from odf_protocol.multihash import decode_varint

ED25519_PUBLIC_KEY = b"\xed\x01"  # varint of multicodec ed25519-pub, 0xed
PUBLIC_KEY_BYTES = 32

# Source: CAIP-2 (namespace, reference) and CAIP-10 (address).
_CHAIN_ACCOUNT = re.compile(r"([-a-z0-9]{3,8}):([-_a-zA-Z0-9]{1,32}):([-.%a-zA-Z0-9]{1,128})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class _Ed25519Did:
    """What the two methods share.

    Attributes:
        public_key: 32 bytes. Nothing checks that they are a point of the curve: whoever verifies a signature will.
    """

    public_key: bytes

    scheme: ClassVar[str]

    def __post_init__(self) -> None:
        if len(self.public_key) != PUBLIC_KEY_BYTES:
            raise MalformedError(f"{self.scheme} key", expected=f"{PUBLIC_KEY_BYTES} bytes", found=len(self.public_key))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the binary form.

        Raises:
            MalformedError: Not 34 bytes.
            UnsupportedError: A key of another kind.
        """
        if data[:2] != ED25519_PUBLIC_KEY:
            code, _ = decode_varint(data)
            raise UnsupportedError(f"{cls.scheme} key type", found=hex(code), supported="ed25519-pub (0xed)")
        return cls(bytes(data[2:]))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form, in any multibase we know.

        Raises:
            MalformedError: Another scheme, or not an identifier.
            UnsupportedError: A key of another kind.
        """
        if not text.startswith(cls.scheme):
            raise MalformedError("DID", expected=f"{cls.scheme}...", found=repr(text))
        return cls.decode(decode_multibase(text[len(cls.scheme) :]))

    def to_bytes(self) -> bytes:
        """Return the binary form, 34 bytes."""
        return ED25519_PUBLIC_KEY + self.public_key


@dataclass(frozen=True, slots=True, order=True)
class DatasetId(_Ed25519Did):
    """Identity of a dataset (``did:odf:fed01...``)."""

    scheme: ClassVar[str] = "did:odf:"

    def __str__(self) -> str:
        return self.scheme + encode_base16(self.to_bytes())


@dataclass(frozen=True, slots=True, order=True)
class DidKey(_Ed25519Did):
    """Identity of a node, an auditor or a signer (``did:key:z6Mk...``)."""

    scheme: ClassVar[str] = "did:key:"

    def __str__(self) -> str:
        return self.scheme + encode_base58btc(self.to_bytes())


@dataclass(frozen=True, slots=True, order=True)
class DidPkh:
    """Identity of an account that is an address on a block chain (``did:pkh:eip155:1:0xb9c5...``).

    Attributes:
        namespace: Family of chains, such as ``eip155``.
        reference: One chain of the family.
        address: As its chain writes it; case counts.
    """

    namespace: str
    reference: str
    address: str

    scheme: ClassVar[str] = "did:pkh:"

    def __post_init__(self) -> None:
        if not _CHAIN_ACCOUNT.fullmatch(f"{self.namespace}:{self.reference}:{self.address}"):
            raise MalformedError("DID", expected="did:pkh:NAMESPACE:CHAIN:ADDRESS", found=repr(str(self)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form, the only one there is.

        Raises:
            MalformedError: Another scheme, or not an address.
        """
        parts = text.removeprefix(cls.scheme).split(":")
        if not text.startswith(cls.scheme) or len(parts) != 3:
            raise MalformedError("DID", expected=f"{cls.scheme}NAMESPACE:CHAIN:ADDRESS", found=repr(text))
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.scheme}{self.namespace}:{self.reference}:{self.address}"


AccountId = DatasetId | DidPkh
"""Identity of an account: a key, written as a dataset's is, or an address on a block chain."""


def parse_account_id(text: str) -> AccountId:
    """Read the identity of an account.

    Raises:
        MalformedError: Neither ``did:odf`` nor ``did:pkh``.
        UnsupportedError: A key of another kind.
    """
    return DidPkh.parse(text) if text.startswith(DidPkh.scheme) else DatasetId.parse(text)
