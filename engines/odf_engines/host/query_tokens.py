"""Words, names, texts and signs of SQL, told apart in one pass without parsing it, for what people type at a terminal.

Statements end at semicolons (QUERY-9), and quoted addresses of datasets stand behind ``FROM`` (QUERY-12). An engine
alone says what a query means.

Source: clauses QUERY-9 and QUERY-12 in ``spec/query.md``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from odf_engines.errors import InvalidQueryError


class TokenKind(Enum):
    """What a part of a query is."""

    WORD = "word"
    NAME = "name"  # in quotes
    TEXT = "text"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class QueryToken:
    """A part of a query.

    Attributes:
        kind: What it is.
        text: Without quotes.
        start: Its first character, quotes included.
        end: The one behind its last.
    """

    kind: TokenKind
    text: str
    start: int
    end: int


# Repetitions are possessive: no character is read twice.
_COMMON: Final = r"""
    (?P<nothing>\s++ | --[^\n]*+)
    | (?P<comment>/\*)
    | (?P<name>{name})
    | (?P<text>{text})
    | (?P<open>['"`])
    | (?P<word>\w++)
    | (?P<sign>.)
"""
_NAME: Final = r'"(?:[^"]|"")*+" | `(?:[^`]|``)*+`'
_TEXT: Final = r"'(?:[^']|'')*+'"
_STANDARD: Final = re.compile(_COMMON.format(name=_NAME, text=_TEXT), re.VERBOSE | re.DOTALL)
_SPARK_NAME: Final = r"`(?:[^`]|``)*+`"
_SPARK_TEXT: Final = r"""[rR]'[^']*+' | [rR]"[^"]*+" | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" """
_SPARK: Final = re.compile(_COMMON.format(name=_SPARK_NAME, text=_SPARK_TEXT), re.VERBOSE | re.DOTALL)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")

SPARK: Final = "spark"
"""The engine in whose SQL double quotes are texts, and texts have escapes."""


def iter_tokens(sql: str, engine: str) -> Iterator[QueryToken]:
    """Yield the parts of a text in an engine's SQL, without spaces and comments.

    Raises:
        InvalidQueryError: A quote or a comment does not end.
    """
    pattern, place = _SPARK if engine.lower() == SPARK else _STANDARD, 0
    while found := pattern.match(sql, place):
        place = found.end()
        match kind := found.lastgroup:
            case "nothing":
                continue
            case "comment":
                place = _end_of_comment(sql, place)
            case "open":
                raise InvalidQueryError(f"{found[0]} opens a text or name at character {place} that does not end")
            case "name" | "text" if sql[found.start()] in "\"'`":
                yield QueryToken(TokenKind(kind), found[0][1:-1].replace(found[0][0] * 2, found[0][0]), *found.span())
            case _:
                yield QueryToken(TokenKind(kind), found[0], *found.span())


def _end_of_comment(sql: str, place: int) -> int:
    start, level = place, 1
    while level:
        edge = _COMMENT_EDGE.search(sql, place)
        if edge is None:
            raise InvalidQueryError(f"/* opens a comment at character {start} that does not end")
        place = edge.end()
        level += 1 if edge[0] == "/*" else -1
    return place


@dataclass(frozen=True, slots=True)
class QueryStatements:
    """QueryStatements in their order, without their semicolons.

    Attributes:
        ended: Those that end with a semicolon.
        rest: What stands behind the last one, empty where that is nothing but spaces and comments.
    """

    ended: tuple[str, ...]
    rest: str


def split_statements(text: str, engine: str) -> QueryStatements:
    """Split a text at its semicolons: those inside of quotes and comments end nothing.

    Raises:
        InvalidQueryError: As ``iter_tokens``.
    """
    ended, start, is_empty = [], 0, True
    for token in iter_tokens(text, engine):
        if token.kind is not TokenKind.SIGN or token.text != ";":
            is_empty = False
            continue
        if not is_empty:
            ended.append(text[start : token.start].strip())
        start, is_empty = token.end, True
    return QueryStatements(tuple(ended), "" if is_empty else text[start:].strip())
