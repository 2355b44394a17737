"""Names of tables among the tokens of a query; ``remote_names`` asks where a text may have some.

Source: clause QUERY-12 in ``spec/query.md``.
"""

from collections.abc import Sequence

from odf_engines.errors import InvalidQueryError
from odf_engines.host.query_tokens import QueryToken, TokenKind, iter_tokens
from odf_node.remote_names import STATE_SUFFIX, RemoteName


def find_quoted(sql: str, engine: str) -> list[RemoteName]:
    """See ``remote_names.find_remote_names``."""
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
