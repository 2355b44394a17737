"""Addresses of datasets that stand as tables in the text of a question.

Source: clause QUERY-12 in ``spec/query.md``.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import odf_node

if TYPE_CHECKING:
    from odf_engines.contract import QueryTable

STATE_SUFFIX: Final = "__state"

# Up to the first slash, then up to the next quote: no character is read again for another slash (SANDBOX-18).
_QUOTED: Final = re.compile(r"""(["`])[^"`/]*+/[^"`]*+\1""")


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
    return [] if _QUOTED.search(sql) is None else odf_node.table_names.find_quoted(sql, engine)
