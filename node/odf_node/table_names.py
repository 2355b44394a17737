"""Names of tables among the tokens of a question; ``remote_names`` asks where a text may have some.

Source: clause QUERY-12 in ``spec/query.md``.
"""

from collections.abc import Sequence

from sqlglot.expressions import to_identifier
from sqlglot.tokens import Token, TokenType

from odf_engines import dialects
from odf_engines.errors import InvalidQueryError
from odf_node.remote_names import STATE_SUFFIX, RemoteName


def find_quoted(sql: str, engine: str) -> list[RemoteName]:
    """See ``remote_names.find_remote_names``."""
    tokens = dialects.queries.tokens_of(sql, engine)
    quoted = [each for each in tokens if sql[each.start] in {'"', "`"} and "/" in each.text]
    starts = _find_table_starts(tokens)
    tables = {each.text for each in quoted if each.start in starts}
    return [
        RemoteName(each.text, each.start, each.end + 1)
        for each in quoted
        if each.start in starts or (each.text in tables and each.token_type == TokenType.IDENTIFIER)
    ]


def _find_table_starts(tokens: Sequence[Token]) -> set[int]:
    """Find where what stands behind ``FROM`` or ``JOIN`` is a table: functions and comparisons say FROM too."""
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
    tokens = dialects.queries.tokens_of(sql, engine)
    names = {each.text.lower().removesuffix(STATE_SUFFIX) for each in tokens}
    if name.lower() in names and any(each.token_type is TokenType.WITH for each in tokens):
        raise InvalidQueryError(
            f"the question has a WITH and the name '{name}', as a dataset here is called; use another"
        )


def quote_name(name: str, engine: str) -> str:
    """Write a name as an engine's SQL quotes it."""
    quoted: str = to_identifier(name, quoted=True).sql(dialect=dialects.queries.dialect_of(engine.lower()))
    return quoted
