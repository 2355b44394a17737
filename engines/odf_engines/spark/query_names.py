"""Dataset names have dots, and SQL reads a dot as a path: quote the names of known tables in a query.

`SELECT * FROM countries.daily` becomes ``SELECT * FROM `countries.daily` ``. Quoted text and comments stay as they are.

Source: spec/query.md QUERY-2.
"""

import re
from collections.abc import Iterable

_TOKEN = re.compile(
    r"""
    (?P<opaque>
        [rR]?'(?:[^'\\]|\\.|'')*'      # text
      | [rR]?"(?:[^"\\]|\\.|"")*"      # text, or an identifier
      | `(?:[^`]|``)*`                 # quoted identifier
      | --[^\n]*                       # comment to the end of the line
      | /\*.*?\*/                      # comment
    )
  | (?P<path>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)+)
  | (?P<other>[A-Za-z0-9_.]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def quote_dotted_names(sql: str, names: Iterable[str]) -> str:
    """Quote each name of `names` that has a dot and stands unquoted in `sql`, alone or before `.column`."""
    dotted = sorted((name for name in names if "." in name), key=len, reverse=True)
    return _TOKEN.sub(lambda match: _quoted(match, dotted), sql) if dotted else sql


def _quoted(match: re.Match[str], dotted: list[str]) -> str:
    path = match["path"]
    if path is None:
        return match[0]
    for name in dotted:
        if path == name or path.startswith(f"{name}."):
            return f"`{name}`{path[len(name) :]}"
    return path
