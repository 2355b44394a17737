"""How far a table was read: the state of a source that is followed by a column that grows.

Source: clauses ING-30 and ING-31 in ``spec/ingest.md``.
"""

import json
from typing import Any, Final

from odf_protocol.events import SourceState

CURSOR: Final = "odf-node/table-cursor"
"""The kind of a source state: how far a table was read. Other nodes do not know it, and read the rows all the same."""

_USUAL_ROWS: Final = "100000"  # guess: a batch of some megabytes
_MOST_ROWS: Final = 10_000_000  # guess: as many as one ingest should have


def cursor_state(place: dict[str, str], last: Any) -> SourceState:
    """Make the state after a batch; ``place`` names the table and the column, ``last`` is a number or a text."""
    value = json.dumps({**place, "last": last}, ensure_ascii=False)
    return SourceState(source_name="default", kind=CURSOR, value=value)


def find_last_value(state: SourceState | None, place: dict[str, str]) -> Any:
    """Read how far a table was read; another table, or another column, was not read at all: None."""
    if state is None or state.kind != CURSOR:
        return None
    try:
        found = json.loads(state.value)
        last = found.pop("last")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return last if found == place and isinstance(last, str | int | float) else None


def read_limit(options: dict[str, str]) -> int | None:
    """Read how many rows a batch has, unless more share its last value; None: that is no such number."""
    text = options.get("limit", _USUAL_ROWS)
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_ROWS))
    return int(text) if is_number and 1 <= int(text) <= _MOST_ROWS else None
