"""Values inside JSON as texts, each of which is then converted by the form of its own type.

A JSON string is its text; any other value is its JSON text as written, so that a number keeps every digit, but for
blanks in an array or object that is inside of another; null is null.

Source: clauses ING-3 and ING-4 in ``spec/ingest.md``.
"""

from typing import Final

import msgspec

from odf_engines.records.json_members import RepeatedKeyError, check_nested, decode_members

NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoders say of bytes that are no JSON, or nested deeper than they go."""

_STRING = msgspec.json.Decoder(str)
_ANY = msgspec.json.Decoder()
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def text_of_json(value: bytes) -> str | None:
    """Return the text of one JSON value.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: It is none (``NOT_JSON``).
        RepeatedKeyError: An object in it has a key twice, with different values.
    """
    if value.startswith(b'"'):
        return _STRING.decode(value)
    text = value.decode("utf-8")
    if text[0] in "[{":
        # Raw values are skipped over; this checks that they are JSON.
        check_nested(value, _ANY.decode(value))
    return None if text == "null" else text


def split_array(text: str) -> list[str | None] | None:
    """Return the texts of the items of a JSON array; None where the text is none."""
    try:
        return [_compact(bytes(item)) for item in _ITEMS.decode(text)]
    except (*NOT_JSON, RepeatedKeyError):
        return None


def split_members(text: str) -> dict[str, str | None] | None:
    """Return the texts of the members of a JSON object; None where the text is none, or has a key twice."""
    try:
        return {name: _compact(member) for name, member in decode_members(text.encode()).items()}
    except (*NOT_JSON, RepeatedKeyError):
        return None


def _compact(value: bytes) -> str | None:
    """Return the text of a value inside another; of an array or object without blanks, however it was written."""
    text = text_of_json(value)
    return msgspec.json.format(text, indent=-1) if value[:1] in (b"[", b"{") and text is not None else text
