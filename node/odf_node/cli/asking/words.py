"""What the shell completes: commands, tables, columns and words of SQL (QUERY-10)."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

_KEYWORDS: Final = """
    ALL AND AS ASC BETWEEN BY CASE CAST COUNT CROSS DESC DISTINCT ELSE END EXISTS FROM FULL GROUP HAVING IN INNER IS
    JOIN LEFT LIKE LIMIT MAX MIN NOT NULL ON OR ORDER OVER PARTITION RIGHT SELECT SUM THEN UNION WHEN WHERE WITH
"""
KEYWORDS: Final = tuple(_KEYWORDS.split())
STATE: Final = "__state"

# Names have dots and hyphens; what is quoted is completed as well.
_WORD: Final = re.compile(r"[\w.\-`]+$")
_QUOTE: Final = "`"

Tables = Mapping[str, tuple[str, ...]]
"""Columns by table."""


class WordCompleter(Completer):
    """Completes the word before the cursor.

    Args:
        tables: Gives the tables as they are now.
        commands: What a line may begin with, each with its dot, and what may follow each.
    """

    def __init__(self, tables: Callable[[], Tables], commands: Mapping[str, tuple[str, ...]]) -> None:
        self._tables = tables
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what the word may become, best first."""
        del complete_event  # whether a key asked or the typing makes no difference
        found = _WORD.search(document.text_before_cursor)
        word = "" if found is None else found[0]
        for each in self._iter_words(document, word):
            yield Completion(each, start_position=-len(word))

    def _iter_words(self, document: Document, word: str) -> Iterator[str]:
        line = document.text_before_cursor
        if line.startswith("."):
            command, _, behind = line.partition(" ")
            if not behind and line == command:
                yield from (each for each in self._commands if each.startswith(line))
                return
            choices = (*self._commands.get(command, ()), *(self._tables() if command == ".schema" else ()))
            yield from (each for each in choices if each.startswith(word))
            return
        yield from complete_word(word, document.text, self._tables())


def complete_word(word: str, text: str, tables: Tables) -> Iterator[str]:
    """Yield the names and words that begin as ``word`` does, whatever the case.

    Args:
        word: Before the cursor; a quote before it is kept.
        text: The whole question: columns are those of the tables that it names.
        tables: All there are.
    """
    quote = _QUOTE if word.startswith(_QUOTE) else ""
    bare = word.removeprefix(_QUOTE)
    before, dot, last = bare.rpartition(".")
    named = [columns for name, columns in tables.items() if name.lower() in text.lower()]
    columns = sorted({column for each in named for column in each})
    if not quote and not dot:
        yield from _beginning(columns, bare)
    names = [form for name in tables for form in (name, name + STATE)]
    yield from (f"{quote}{name}{quote}" for name in _beginning(names, bare) if bare or quote)
    # Behind a name and a dot, or behind an alias.
    if dot and not quote:
        yield from (f"{before}.{column}" for column in _beginning(columns, last))
    if bare and not quote and not dot:
        yield from (each.lower() if bare.islower() else each for each in _beginning(KEYWORDS, bare))
    elif not bare and not quote and not columns:
        yield from tables


def _beginning(words: "tuple[str, ...] | list[str]", start: str) -> Iterator[str]:
    return (word for word in words if word.lower().startswith(start.lower()))
