"""Self-describing text forms of bytes: the first character names the alphabet.

Base16 is the rule, base58btc is for ``did:key``, base64url for signatures.

Source: ODF "Hashes" and "Dataset Identity"; multibase specification.
"""

import base64
import binascii
from functools import lru_cache
from typing import Final

from odf_protocol.errors import MalformedError

# Bounds the quadratic cost of base58; the longest thing written in multibase is a 64-byte signature. # guess
MAX_ENCODED_CHARACTERS = 1024

_LOWER_HEX = frozenset("0123456789abcdef")
_UPPER_HEX = frozenset("0123456789ABCDEF")
_MAX_KEYS: Final = 1_024  # guess: identities that one process meets again and again; each took 200 µs


def encode_base16(data: bytes) -> str:
    """Encode with prefix ``f``."""
    return "f" + data.hex()


def encode_base64url(data: bytes) -> str:
    """Encode with prefix ``u``, without padding."""
    return "u" + base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


@lru_cache(maxsize=_MAX_KEYS)
def encode_base58btc(data: bytes) -> str:
    """Encode with prefix ``z``."""
    from multiformats import multibase

    text: str = multibase.get("base58btc").encode(data)
    return text


def decode_multibase(text: str) -> bytes:
    """Decode base16 (``f``, ``F``), base58btc (``z``) or base64url without padding (``u``).

    Raises:
        MalformedError: Another prefix, a foreign character, or a second way to write the same bytes.
    """
    if len(text) > MAX_ENCODED_CHARACTERS:
        raise MalformedError("multibase", expected=f"at most {MAX_ENCODED_CHARACTERS} characters", found=len(text))
    try:
        return _decode(text[:1], text[1:])
    except (ValueError, binascii.Error) as error:
        raise MalformedError("multibase", expected="its alphabet", found=repr(text)) from error


def _decode(prefix: str, body: str) -> bytes:
    match prefix:
        # bytes.fromhex skips spaces, so the alphabet is checked first.
        case "f" | "F":
            if not (_LOWER_HEX if prefix == "f" else _UPPER_HEX).issuperset(body):
                raise ValueError("not hexadecimal")
            return bytes.fromhex(body)
        case "u":
            data = base64.b64decode(body.encode("ascii") + b"=" * (-len(body) % 4), altchars=b"-_", validate=True)
            if encode_base64url(data) != "u" + body:
                raise ValueError("not the canonical form")
            return data
        case "z":
            return _decode_base58btc(prefix + body)
    raise MalformedError("multibase", expected="base16 (f, F), base58btc (z) or base64url (u)", found=repr(prefix))


@lru_cache(maxsize=_MAX_KEYS)
def _decode_base58btc(text: str) -> bytes:
    from multiformats import multibase

    data: bytes = multibase.get("base58btc").decode(text)
    return data
