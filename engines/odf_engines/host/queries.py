"""The queries of a transform, and names in queries and answers.

Dataset names have dots, which SQL reads as a path; answers name a column once.

`SELECT * FROM countries.daily` becomes ``SELECT * FROM `countries.daily` ``. Quoted text and comments stay as they are.

Source: spec/query.md QUERY-2, QUERY-5; ODF "TransformSql", clause GATE-1.
"""

import re
from collections.abc import Iterable, Sequence

from odf_engines.errors import InvalidQueryError
from odf_protocol.events import SqlQueryStep, TransformSql

OPAQUE = r"""
        [rR]?'(?:[^'\\]|\\.|'')*'      # text
      | [rR]?"(?:[^"\\]|\\.|"")*"      # text, or an identifier
      | `(?:[^`]|``)*`                 # quoted identifier
      | --[^\n]*                       # comment to the end of the line
      | /\*.*?\*/                      # comment
"""
"""Parts of a query whose words are none of the query's, for a verbose pattern."""

_LETTER = re.compile(r"[A-Za-z_]")


def quote_dotted_names(sql: str, names: Iterable[str]) -> str:
    """Quote each name of `names` that has a dot and stands unquoted in `sql`, alone or before `.column`.

    Case does not matter (NAME-3); what is quoted is spelled as in `names`. A name that begins with a digit could be a
    number, so it has to be quoted by whoever asks.
    """
    # The longest that fits is meant: `a.b.c` before `a.b`.
    dotted = sorted((name for name in names if "." in name and _LETTER.match(name)), key=len, reverse=True)
    if not dotted:
        return sql
    spelled = {name.lower(): name for name in dotted}
    words = "|".join(re.escape(name) for name in dotted)
    token = re.compile(
        rf"(?P<opaque>{OPAQUE})|(?<![\w.])(?P<name>{words})(?![\w-])", re.VERBOSE | re.DOTALL | re.IGNORECASE
    )
    return token.sub(lambda found: f"`{spelled[found['name'].lower()]}`" if found["name"] else found[0], sql)


def distinguish(names: Sequence[str]) -> list[str]:
    """Give a repeated name a number (QUERY-5)."""
    found: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found


OUTPUT = "__output__"  # how other engines name the result of the last step


def steps_of(transform: TransformSql) -> tuple[SqlQueryStep, ...]:
    """Return the queries in order.

    Raises:
        InvalidQueryError: None, or one that later steps cannot name.
    """
    steps = transform.queries or ()
    if transform.query is not None:
        steps = (*steps, SqlQueryStep(query=transform.query))
    if not steps:
        raise InvalidQueryError("a transform has at least one query")
    for step in steps[:-1]:
        if step.alias is None:
            raise InvalidQueryError("only the last query may be without an alias")
    return steps
