"""Readers of single values: what one word means to a text, a number, an enumeration, a hash.

MAN-5: The declared kind decides, never the look of the word: ``no``, ``on``, ``2020-01-01`` and ``1e3`` are texts where
a text is asked for, and mistakes everywhere else. MAN-6: attributes follow YAML 1.2. MAN-7: times, hashes, ids, bytes.

Source: clauses of ``spec/manifests.md``.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from odf_protocol.errors import OdfError
from odf_protocol.events.declaration import BytesKind, EnumKind, ScalarKind
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.manifest.errors import Path, Place, Reader, find_nearest, list_words
from odf_protocol.manifest.nodes import BOOLS, ListNode, MapNode, Node, ScalarNode, describe, resolve_plain
from odf_protocol.timestamp import Timestamp

_T = TypeVar("_T")

_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_MAX_INTEGER_CHARACTERS: Final = 20  # the longest are -2**63 and 2**64-1

#: YAML 1.1 reads these as booleans; an author who writes one means one.
_YAML11_BOOLS: Final = {"yes": "true", "y": "true", "on": "true", "no": "false", "n": "false", "off": "false"}

# Beyond these, JSON readers of other nodes turn integers to floats.
_MAX_EXTRA_INTEGER: Final = 2**64 - 1
_MIN_EXTRA_INTEGER: Final = -(2**63)

_BYTES_EXPECTED: Final = {"Multihash": "a hash like f1620…", "DatasetId": "a dataset id like did:odf:fed01…"}


def spellings_of(named: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    """Map the three accepted spellings of each PascalCase name (Pascal, camel, all lower) to its meaning."""
    by_spelling: dict[str, _T] = {}
    for name, meaning in named:
        by_spelling[name] = by_spelling[name[:1].lower() + name[1:]] = by_spelling[name.lower()] = meaning
    return by_spelling


def read_text(node: Node, path: Path, place: Place) -> str:
    """Read any word or quoted text; null is not one."""
    if type(node) is not ScalarNode:
        place.fail(node, path, "a text", describe(node))
    if node.is_null:
        place.fail(node, path, "a text", f"{describe(node)} (in quotes it would be a text)" if node.text else "nothing")
    return node.text


def read_bool(node: Node, path: Path, place: Place) -> bool:
    """Read ``true`` or ``false``."""
    if type(node) is not ScalarNode or not node.is_plain or node.text not in BOOLS:
        nearest = _YAML11_BOOLS.get(node.text.lower()) if isinstance(node, ScalarNode) else None
        place.fail(node, path, "true or false", describe(node), nearest)
    return BOOLS[node.text]


def read_timestamp(node: Node, path: Path, place: Place) -> Timestamp:
    """Read RFC 3339, quoted or not."""
    expected = "a time like 2020-01-31T12:00:00Z"
    if type(node) is not ScalarNode:
        place.fail(node, path, expected, describe(node))
    try:
        return Timestamp.parse(node.text)
    except OdfError:
        place.fail(node, path, expected, describe(node))


def integer_reader(kind: ScalarKind) -> Reader:
    """Build the reader of a whole number within the bounds of its storage."""
    minimum, maximum = kind.scalar.minimum, kind.scalar.maximum
    expected = f"a whole number from {minimum} to {maximum}"

    def read_integer(node: Node, path: Path, place: Place) -> int:
        is_number = (
            type(node) is ScalarNode
            and node.is_plain
            and len(node.text) <= _MAX_INTEGER_CHARACTERS
            and _DECIMAL.fullmatch(node.text) is not None
        )
        if not is_number or not isinstance(node, ScalarNode) or not minimum <= (value := int(node.text)) <= maximum:
            place.fail(node, path, expected, describe(node))
        return value

    return read_integer


def enum_reader(kind: EnumKind) -> Reader:
    """Build the reader of an enumeration's member."""
    words = [member.text for member in kind.enum]
    by_spelling = spellings_of((member.text, member) for member in kind.enum)
    expected = f"one of {list_words(words)}"

    def read_enum(node: Node, path: Path, place: Place) -> object:
        if type(node) is not ScalarNode:
            place.fail(node, path, expected, describe(node))
        found = by_spelling.get(node.text)
        if found is None:
            place.fail(node, path, expected, describe(node), find_nearest(node.text, words))
        return found

    return read_enum


def bytes_reader(kind: BytesKind) -> Reader:
    """Build the reader of a hash, an id, or bytes in base64."""
    parse: Callable[[str], object] = getattr(kind.type, "parse", _decode_base64)
    expected = _BYTES_EXPECTED.get(kind.type.__name__, "bytes in base64")

    def read_bytes(node: Node, path: Path, place: Place) -> object:
        if type(node) is not ScalarNode:
            place.fail(node, path, expected, describe(node))
        try:
            return parse(node.text)
        except OdfError as error:
            place.fail(node, path, expected, f"{describe(node)} ({error})")
        except ValueError:
            place.fail(node, path, expected, describe(node))

    return read_bytes


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def read_extra(node: Node, path: Path, place: Place) -> ExtraAttributes:
    """Read a map of free-form attributes; here, where no declaration helps, words mean what YAML 1.2 says."""
    if type(node) is not MapNode:
        place.fail(node, path, "a map of attributes", describe(node))
    try:
        return ExtraAttributes.of(
            {key.text: _json_value(value, (path, key.text), place) for key, value in node.entries}
        )
    except OdfError as error:
        place.fail(node, path, "attributes that JSON can hold", str(error))


def _json_value(node: Node, path: Path, place: Place) -> object:
    match node:
        case MapNode():
            return {key.text: _json_value(value, (path, key.text), place) for key, value in node.entries}
        case ListNode():
            return [_json_value(item, (path, index), place) for index, item in enumerate(node.items)]
        case ScalarNode(is_plain=False):
            return node.text
    value = resolve_plain(node.text)
    match value:
        case float() if not math.isfinite(value):
            place.fail(node, path, "a number that JSON can hold", describe(node))
        case int() if not _MIN_EXTRA_INTEGER <= value <= _MAX_EXTRA_INTEGER:
            place.fail(node, path, "a whole number of at most 64 bits", describe(node))
    return value
