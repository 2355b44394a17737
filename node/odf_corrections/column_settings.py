"""``--set COLUMN=SQL``: columns that are computed anew, of ``correct`` and ``quarantine fix``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlglot
from sqlglot import exp

from odf_engines.errors import InvalidQueryError
from odf_node.errors import UsageError


def read_settings(words: Sequence[str], *, example: str) -> dict[str, str]:
    """Read what each column is set to.

    Raises:
        UsageError: One says no column or nothing for it, or two name the same one.
    """
    settings: dict[str, str] = {}
    for word in words:
        column, equals, sql = word.partition("=")
        if not equals or not column.strip() or not sql.strip():
            raise UsageError(f"--set {word}: expected COLUMN=SQL, such as --set {example}")
        _require_one_expression(word, sql)
        if column.strip() in settings:
            raise UsageError(f"--set names the column '{column.strip()}' twice")
        settings[column.strip()] = sql
    return settings


def _require_one_expression(word: str, sql: str) -> None:
    """Require one value: engines take ``a, b`` in brackets for one of two members."""
    try:
        found = sqlglot.parse_one(f"SELECT {sql}").expressions
    except sqlglot.errors.SqlglotError:
        return  # the engine says what is wrong with it
    if len(found) > 1 or isinstance(found[0].unnest(), exp.Tuple):
        raise UsageError(f"--set {word}: expected one expression; give --set once for each column")


@contextmanager
def explaining_texts(settings: Mapping[str, str]) -> Iterator[None]:
    """Say of a word that is no column how a text is written: the shell took its quotes, or nobody wrote any."""
    try:
        yield
    except InvalidQueryError as error:
        for column, sql in settings.items():
            word = sql.strip()
            if word.isidentifier() and f"there is no column {word};" in error.message:
                quoted = f"""--set "{column}='{word}'\""""
                raise UsageError(
                    f"--set {column}={sql}: there is no column '{word}'; a text stands in quotes: {quoted}"
                ) from error
        raise
