"""Errors of DataFusion for people: one line, what the query could have named, and where another engine's SQL is meant.

Nothing here reads a query: hints follow from the engine's own error.

Source: clause QUERY-15 in ``spec/query.md``.
"""

import difflib
import re
from collections.abc import Collection
from typing import Final

from odf_engines.errors import InvalidQueryError

_PREFIX: Final = re.compile(
    r"^(?:(?:Error during planning|Schema error|SQL error|Arrow error|Execution error|type_coercion|caused by"
    r"|This feature is not implemented|Optimizer rule '\w+' failed)(?::\s*|\s+))+"
)
_PARSER: Final = re.compile(
    r'^(?:ParserError|TokenizerError)\("(.*?)(?: at Line: (\d+), Column: (\d+))?"\)$', re.DOTALL
)
_NO_TABLE: Final = re.compile(r"table '(?:odf\.)?(?:odf\.)?(.+?)' not found")
_NO_FUNCTION: Final = re.compile(r"Invalid function '(.+?)'\.(?:\s+Did you mean '(.+?)'\?)?")
_NO_COLUMN: Final = re.compile(r"No field named (.+?)\.(?: Valid fields are (.+?))?(?:\.$|$| Did you mean)", re.DOTALL)
_NO_QUERY: Final = {
    "SHOW": "'odf-node list' lists the datasets, and .tables in the shell their columns",
    "DESCRIBE": "'odf-node inspect schema NAME' shows the columns, as .schema NAME does in the shell",
}
# Behind a comma DataFusion reads the word as the clause OFFSET.
_BARE_OFFSET: Final = re.compile(r",\s*offset\b", re.IGNORECASE)
_MAX_LISTED: Final = 20
_MAX_CHARACTERS: Final = 600  # guess: some lines of a terminal


def explain(error: InvalidQueryError, sql: str, tables: Collection[str]) -> InvalidQueryError:
    """Say an error of the engine in one line.

    Args:
        error: What the engine said.
        sql: Of which query.
        tables: Names that the query could have had in FROM.
    """
    text = _PREFIX.sub("", error.message.strip())
    if (found := _PARSER.match(text)) is not None:
        place = f"line {found[2]}, column {found[3]}" if found[2] else None
        hint = """; the column stands in double quotes there: "offset\"""" if _BARE_OFFSET.search(sql) else ""
        return InvalidQueryError(_cut(found[1].replace('\\"', '"')) + hint, position=place)
    return InvalidQueryError(_cut(_reword(text, tables)), position=error.position)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CHARACTERS else f"{line[:_MAX_CHARACTERS]}…"


def _reword(text: str, tables: Collection[str]) -> str:
    if (found := _NO_TABLE.search(text)) is not None:
        return f"there is no dataset or table {found[1]}; {_suggest(found[1], tables, 'known are')}"
    if text.startswith("SHOW ") or "found DESCRIBE" in text:
        word = "SHOW" if text.startswith("SHOW ") else "DESCRIBE"
        return f"only queries are answered, and {word} is none: {_NO_QUERY[word]}"
    if (found := _NO_FUNCTION.search(text)) is not None:
        near = f"did you mean {found[2]}? " if found[2] else ""
        return (
            f"DataFusion's SQL has no function {found[1]}; {near}Spark's functions are in Spark's SQL (--engine spark)"
        )
    if (found := _NO_COLUMN.search(text)) is not None:
        name, listed = found[1].rpartition(".")[2].strip('"'), found[2] or ""
        columns = list(dict.fromkeys(each.rpartition(".")[2].strip('"') for each in listed.split(", ") if each))
        return f"there is no column {name}; {_suggest(name, columns, 'the columns are')}"
    return text


def _suggest(name: str, known: Collection[str], listed: str) -> str:
    by_lower = {each.lower(): each for each in known}
    if near := difflib.get_close_matches(name.lower(), by_lower, n=1):
        return f"did you mean {by_lower[near[0]]}?"
    if not known:
        return "a text stands in single quotes" if listed == "the columns are" else "there is none to ask"
    shown = sorted(known)[:_MAX_LISTED]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return f"{listed}: {', '.join(shown)}{more}"
