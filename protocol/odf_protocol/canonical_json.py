"""Canonical JSON: one value has one encoding, so bytes can be hashed and signed and still be read by people.

Documents are ``msgspec.Struct`` types of plain values. The decoder accepts exactly what the encoder writes: it encodes
what it decoded and compares, which rules out repeated keys, other spellings of a number or a string, and another order
of keys. ``parse_exact`` does the same for identifiers, hashes and times, which documents hold as text.

Source: clauses CJSON-1 to CJSON-7 in ``spec/extensions/signatures.md``.
"""

from functools import lru_cache
from typing import Annotated, Any, Final, Protocol, Self, TypeVar

import msgspec

from odf_protocol.errors import MalformedError

MAX_SAFE_INTEGER: Final = 2**53 - 1  # RFC 8259 section 6: integers that every JSON reader keeps exactly

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_SAFE_INTEGER)]
"""A number of things, or a position."""
ShortText = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
"""A name or a version.  # guess at the length"""
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=160)]
"""Text form of an identifier, hash or time; a ``did:odf`` has 76 characters, a logical hash 75."""


class Document(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Base of everything that is encoded canonically. Its constructor does not validate; decoding does."""


class _Parsed(Protocol):
    @classmethod
    def parse(cls, text: str) -> Self: ...


D = TypeVar("D", bound=Document)
P = TypeVar("P", bound=_Parsed)


def encode_canonical(document: Document) -> bytes:
    """Encode a document of our own.

    Raises:
        ValueError: It is not a valid document, so that decoding would reject it.
    """
    raw = msgspec.json.encode(document, order="sorted")
    try:
        decode_canonical(raw, type(document), what=type(document).__name__, max_bytes=len(raw))
    except MalformedError as error:
        raise ValueError(str(error)) from error
    return raw


def decode_canonical(raw: bytes, document_type: type[D], *, what: str, max_bytes: int) -> D:
    """Decode untrusted bytes that must be the canonical encoding of a document.

    Args:
        raw: The bytes; the caller keeps them, nothing is ever encoded again for storing or sending.
        document_type: What they must be.
        what: Name of the document for messages.
        max_bytes: Longer input is rejected before it is read.

    Raises:
        MalformedError: Too large, not JSON, not such a document, or not its canonical encoding.
    """
    if len(raw) > max_bytes:
        raise MalformedError(what, expected=f"at most {max_bytes} bytes", found=len(raw))
    try:
        document: D = _decoder(document_type).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(what, expected="its JSON form", found=error) from error
    canonical = msgspec.json.encode(document, order="sorted")
    if canonical != raw:
        where = _first_difference(canonical, raw)
        raise MalformedError(what, where=where, expected="canonical JSON", found=repr(raw[where : where + 40]))
    return document


def parse_exact(kind: type[P], text: str, what: str) -> P:
    """Parse an identifier, hash or time that must be in its usual text form (CJSON-6).

    Raises:
        MalformedError: Not of this kind, or another spelling of it.
        UnsupportedError: An identifier with a key of another kind.
    """
    value = kind.parse(text)
    if str(value) != text:
        raise MalformedError(what, expected=value, found=text)
    return value


@lru_cache(maxsize=64)
def _decoder(document_type: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(document_type)


def _first_difference(one: bytes, other: bytes) -> int:
    for position, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return position
    return min(len(one), len(other))
