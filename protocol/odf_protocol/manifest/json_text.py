"""JSON text to the same node tree that YAML text gives.

The standard library's parser keeps the last of two equal keys and forgets positions; this one rejects repeated keys and
keeps positions. Strings are decoded by the standard library's scanner.

Source: RFC 8259.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, decoder
from typing import Final, NoReturn

from odf_protocol.manifest import limits
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, shorten
from odf_protocol.manifest.yaml_text import check_key, position_of

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_LITERAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_WORD: Final = re.compile(r"[^\s,:\[\]{}]{0,40}")


def parse_json(text: str, *, source_name: str) -> Node:
    """Read the one document of ``text``.

    Raises:
        ManifestError: Not JSON, a repeated key, or over a limit.
    """
    return _Scanner(text, source_name).read_document()


class _Scanner:
    """One pass over the text; ``_index`` is the next character to look at."""

    def __init__(self, text: str, source_name: str) -> None:
        self._text = text
        self._source_name = source_name
        self._index = 0
        self._line = 1
        self._line_start = 0
        self._counted_to = 0
        self._budget = limits.MAX_NODES

    def read_document(self) -> Node:
        root = self._read_value(0)
        self._skip_space()
        if self._index < len(self._text):
            self._reject("the end of the document", self._word_here())
        return root

    def _read_value(self, depth: int) -> Node:
        self._skip_space()
        self._budget -= 1
        if self._budget < 0:
            self._reject(f"at most {limits.MAX_NODES} values", "more")
        line, column = self._position()
        match self._text[self._index : self._index + 1]:
            case "{":
                return self._read_map(depth + 1, line, column)
            case "[":
                return self._read_list(depth + 1, line, column)
            case '"':
                return ScalarNode(self._read_string(), is_plain=False, line=line, column=column)
        literal = _LITERAL.match(self._text, self._index)
        if literal is None:
            self._reject("a JSON value", self._word_here())
        self._index = literal.end()
        return ScalarNode(literal.group(), is_plain=True, line=line, column=column)

    def _read_map(self, depth: int, line: int, column: int) -> MapNode:
        node = MapNode([], line, column)
        seen: set[str] = set()
        self._enter(depth)
        if self._accept("}"):
            return node
        while True:
            self._skip_space()
            if not self._text.startswith('"', self._index):
                self._reject("a field name in quotes", self._word_here())
            key_line, key_column = self._position()
            key = ScalarNode(self._read_string(), is_plain=False, line=key_line, column=key_column)
            check_key(key, seen, self._source_name)
            if not self._accept(":"):
                self._reject("':'", self._word_here())
            node.entries.append((key, self._read_value(depth)))
            if self._accept("}"):
                return node
            if not self._accept(","):
                self._reject("',' or '}'", self._word_here())

    def _read_list(self, depth: int, line: int, column: int) -> ListNode:
        node = ListNode([], line, column)
        self._enter(depth)
        if self._accept("]"):
            return node
        while True:
            node.items.append(self._read_value(depth))
            if self._accept("]"):
                return node
            if not self._accept(","):
                self._reject("',' or ']'", self._word_here())

    def _enter(self, depth: int) -> None:
        if depth > limits.MAX_DEPTH:
            self._reject(f"nesting of at most {limits.MAX_DEPTH} levels", "a deeper one")
        self._index += 1

    def _read_string(self) -> str:
        start = self._index
        try:
            value, self._index = _scan_string(self._text, start + 1)
        except JSONDecodeError as error:
            self._index = min(error.pos, len(self._text))
            self._reject("a JSON string", f"a mistake: {error.msg[:1].lower()}{error.msg[1:]}")
        if len(value) > limits.MAX_SCALAR_CHARACTERS:
            self._index = start
            self._reject(f"at most {limits.MAX_SCALAR_CHARACTERS} characters", f"{len(value)}")
        if not value.isascii() and not _is_unicode(value):
            self._index = start
            self._reject("Unicode text", "a lone surrogate")
        return value

    def _accept(self, character: str) -> bool:
        self._skip_space()
        if self._text.startswith(character, self._index):
            self._index += 1
            return True
        return False

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._index)
        assert match is not None, "the pattern matches the empty string"
        self._index = match.end()

    def _position(self) -> tuple[int, int]:
        # Lines are counted onward from the last position asked for, so the whole text is scanned once.
        newlines = self._text.count("\n", self._counted_to, self._index)
        if newlines:
            self._line += newlines
            self._line_start = self._text.rfind("\n", self._counted_to, self._index) + 1
        self._counted_to = self._index
        return self._line, self._index - self._line_start + 1

    def _word_here(self) -> str:
        if self._index >= len(self._text):
            return "the end of the text"
        match = _WORD.match(self._text, self._index)
        assert match is not None, "the pattern matches the empty string"
        return repr(shorten(match.group() or self._text[self._index]))

    def _reject(self, expected: str, found: str) -> NoReturn:
        line, column = position_of(self._text, self._index)
        raise ManifestError(self._source_name, line, column, expected=expected, found=found)


def _scan_string(text: str, start: int) -> tuple[str, int]:
    """Decode the string whose opening quote is before ``start``; raises JSONDecodeError."""
    value: str
    # The standard library's own scanner, in C; public by name, though its type stubs leave it out.
    value, end = decoder.scanstring(text, start, True)  # type: ignore[attr-defined]
    return value, end


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
