"""Texts in double quotes that somebody may have meant for a column's name, as standard SQL has it.

Source: clause QUERY-13 in ``spec/query.md``.
"""

from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from odf_engines.dialects.translation import dialect_of


def find_double_quoted_texts(sql: str, engine: str) -> list[str]:
    """Find what stands in double quotes and is a text to the engine, each once.

    Args:
        sql: A question that the engine answered.
        engine: Whose SQL it is.
    """
    try:
        tokens = dialect_of(engine.lower()).tokenize(sql)
    except TokenError:
        return []  # the engine can read what the library cannot
    texts = (each.text for each in tokens if each.token_type == TokenType.STRING and sql[each.start] == '"')
    return [*dict.fromkeys(texts)]
