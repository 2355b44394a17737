"""Where statements end in a text of several: told by the tokens of the engine's dialect, never by the bare sign.

Source: clause QUERY-9 in ``spec/query.md``.
"""

from dataclasses import dataclass

from odf_engines.dialects.translation import dialect_of
from odf_engines.errors import InvalidQueryError


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements in their order, without their semicolons.

    Attributes:
        ended: Those that end with a semicolon.
        rest: What stands behind the last one, empty where that is nothing but spaces and comments.
    """

    ended: tuple[str, ...]
    rest: str


def split_statements(text: str, engine: str) -> Statements:
    """Split a text at its semicolons; those inside of quotes and comments end nothing.

    Args:
        text: Any number of statements.
        engine: Whose SQL it is.

    Raises:
        InvalidQueryError: A quote does not end.
    """
    from sqlglot.errors import TokenError
    from sqlglot.tokens import TokenType

    try:
        tokens = dialect_of(engine.lower()).tokenize(text)
    except TokenError as error:
        raise InvalidQueryError("a quoted text or name does not end") from error
    ended, start, is_empty = [], 0, True
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            is_empty = False
            continue
        if not is_empty:
            ended.append(text[start : token.start].strip())
        start, is_empty = token.end + 1, True
    return Statements(tuple(ended), "" if is_empty else text[start:].strip())
