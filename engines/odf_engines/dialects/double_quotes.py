"""Texts in double quotes that somebody may have meant for a column's name, as standard SQL has it.

Source: clause QUERY-13 in ``spec/query.md``.
"""

from collections.abc import Iterable

from odf_engines.dialects.translation import dialect_of

__all__ = ["find_texts_like_names"]


def find_texts_like_names(sql: str, engine: str, names: Iterable[str]) -> list[str]:
    """Find what stands in double quotes, is a text to the engine, and is called like a column.

    Args:
        sql: A question that the engine answered.
        engine: Whose SQL it is.
        names: Of columns; case does not matter.

    Returns:
        The names as they are written in the question, each once.
    """
    from sqlglot.tokens import TokenType

    known = {each.lower() for each in names}
    texts = (
        each.text
        for each in dialect_of(engine.lower()).tokenize(sql)
        if each.token_type == TokenType.STRING and sql[each.start] == '"'
    )
    return [*dict.fromkeys(each for each in texts if each.lower() in known)]
