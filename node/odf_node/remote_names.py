"""Addresses of datasets that stand as tables in the text of a question.

Source: clause QUERY-12 in ``spec/query.md``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odf_engines.errors import InvalidQueryError
from odf_engines.host.query_tokens import QueryToken, TokenKind, iter_tokens

if TYPE_CHECKING:
    from odf_engines.contract import QueryTable

STATE_SUFFIX: Final = "__state"

# Up to the first slash, then up to the next quote: no character is read again for another slash (SANDBOX-18).
_QUOTED: Final = re.compile(r"""(["`])[^"`/]*+/[^"`]*+\1""")


@dataclass(frozen=True, slots=True)
class RemoteName:
    """A dataset elsewhere that a question names: as what, and where that stands in the text, quotes included."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RemoteQuery:
    """A question whose tables are all here: its text, the tables that it got, and a line about each for people."""

    sql: str
    tables: "tuple[QueryTable, ...]" = ()
    notes: tuple[str, ...] = ()


def find_remote_names(sql: str, engine: str) -> list[RemoteName]:
    """Find the addresses that stand quoted behind ``FROM`` or ``JOIN``, and where they stand again as names.

    Args:
        sql: A question.
        engine: Whose SQL it is.

    Raises:
        InvalidQueryError: A quote does not end.
    """
    if _QUOTED.search(sql) is None:
        return []
    tokens = [*iter_tokens(sql, engine)]
    quoted = [each for each in tokens if sql[each.start] in {'"', "`"} and "/" in each.text]
    starts = _find_table_starts(tokens)
    tables = {each.text for each in quoted if each.start in starts}
    return [
        RemoteName(each.text, each.start, each.end)
        for each in quoted
        if each.start in starts or (each.text in tables and each.kind is TokenKind.NAME)
    ]


def _find_table_starts(tokens: Sequence[QueryToken]) -> set[int]:
    """Find where what stands behind ``FROM`` or ``JOIN`` is a table: functions and comparisons say FROM too."""
    starts = set()
    words = [each.text.upper() if each.kind in {TokenKind.WORD, TokenKind.SIGN} else "" for each in tokens]
    has_select = [True]  # at each depth of parentheses; FROM in parentheses without one is an argument's
    for before, word, behind in zip(words, words[1:], [*tokens[2:], None], strict=False):
        if before == "(":
            has_select.append(word == "FROM")
        elif before == ")" and len(has_select) > 1:
            has_select.pop()
        elif before == "SELECT":
            has_select[-1] = True
        is_table = word == "JOIN" or (word == "FROM" and has_select[-1] and before != "DISTINCT")
        if is_table and behind is not None:
            starts.add(behind.start)
    return starts


def require_undefined(name: str, sql: str, engine: str) -> None:
    """Reject a query whose ``WITH`` may define the name of a dataset, as that would answer in its place."""
    tokens = [*iter_tokens(sql, engine)]
    names = {each.text.lower().removesuffix(STATE_SUFFIX) for each in tokens}
    if name.lower() in names and any(each.kind is TokenKind.WORD and each.text.upper() == "WITH" for each in tokens):
        raise InvalidQueryError(f"the query has a WITH and the name '{name}', as a dataset here is called; use another")


def quote_name(name: str) -> str:
    """Write a name in back-ticks, which DataFusion and Spark both read as a name's quotes."""
    return "`" + name.replace("`", "``") + "`"
