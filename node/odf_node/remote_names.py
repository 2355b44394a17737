"""Addresses of datasets that stand as tables in the text of a question.

Source: clause QUERY-12 in ``spec/query.md``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odf_engines import dialects
from odf_engines.errors import InvalidQueryError

if TYPE_CHECKING:
    from sqlglot.tokens import Token

    from odf_engines.contract import QueryTable

STATE_SUFFIX: Final = "__state"

_QUOTED: Final = re.compile(r"""(["`])[^"`]*/[^"`]*\1""")


@dataclass(frozen=True, slots=True)
class RemoteName:
    """A dataset elsewhere that a question names: as what, and where that stands in the text, quotes included."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RemoteQuestion:
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
    from sqlglot.tokens import TokenType

    tokens = dialects.queries.tokens_of(sql, engine)
    quoted = [each for each in tokens if sql[each.start] in {'"', "`"} and "/" in each.text]
    starts = _find_table_starts(tokens)
    tables = {each.text for each in quoted if each.start in starts}
    return [
        RemoteName(each.text, each.start, each.end + 1)
        for each in quoted
        if each.start in starts or (each.text in tables and each.token_type == TokenType.IDENTIFIER)
    ]


def _find_table_starts(tokens: "Sequence[Token]") -> set[int]:
    """Find where what stands behind ``FROM`` or ``JOIN`` is a table: functions and comparisons say FROM too."""
    from sqlglot.tokens import TokenType

    starts = set()
    has_select = [True]  # at each depth of parentheses; FROM in parentheses without one is an argument's
    for before, each, behind in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if before.token_type is TokenType.L_PAREN:
            has_select.append(each.token_type is TokenType.FROM)
        elif before.token_type is TokenType.R_PAREN and len(has_select) > 1:
            has_select.pop()
        elif before.token_type is TokenType.SELECT:
            has_select[-1] = True
        is_table = each.token_type is TokenType.JOIN or (
            each.token_type is TokenType.FROM and has_select[-1] and before.token_type is not TokenType.DISTINCT
        )
        if is_table and behind is not None:
            starts.add(behind.start)
    return starts


def require_undefined(name: str, sql: str, engine: str) -> None:
    """Reject a question whose ``WITH`` may define the name of a dataset, as that would answer in its place."""
    from sqlglot.tokens import TokenType

    tokens = dialects.queries.tokens_of(sql, engine)
    names = {each.text.lower().removesuffix(STATE_SUFFIX) for each in tokens}
    if name.lower() in names and any(each.token_type is TokenType.WITH for each in tokens):
        raise InvalidQueryError(
            f"the question has a WITH and the name '{name}', as a dataset here is called; use another"
        )


def quote_name(name: str, engine: str) -> str:
    """Write a name as an engine's SQL quotes it."""
    from sqlglot.expressions import to_identifier

    quoted: str = to_identifier(name, quoted=True).sql(dialect=dialects.queries.dialect_of(engine.lower()))
    return quoted
