"""What a source said about its version, or how far a table was read, as it is kept in AddData blocks.

Source: ODF "SourceState" (kinds ``odf/etag``, ``odf/last-modified``); clauses
ING-30 and ING-31 in ``spec/plug-ins/sources.md``.
"""

import json
from typing import Any, Final

from odf_protocol.errors import MalformedError
from odf_protocol.events import ETAG, LAST_MODIFIED, SourceState
from odf_protocol.timestamp import Timestamp

# The one source a polling dataset has; the name that the reference implementation writes.
_SOURCE_NAME: Final = "default"


def etag_state(etag: str) -> SourceState:
    """Make the state of a source that names its versions."""
    return SourceState(source_name=_SOURCE_NAME, kind=ETAG, value=etag)


def last_modified_state(time: Timestamp) -> SourceState:
    """Make the state of a source that dates its versions."""
    return SourceState(source_name=_SOURCE_NAME, kind=LAST_MODIFIED, value=str(time))


def find_etag(state: SourceState | None) -> str | None:
    """Return the version's name, or None when the state is of another kind."""
    return state.value if state is not None and state.kind == ETAG else None


def find_last_modified(state: SourceState | None) -> Timestamp | None:
    """Return the version's date, or None when the state is of another kind or unreadable: then all is fetched."""
    if state is None or state.kind != LAST_MODIFIED:
        return None
    try:
        return Timestamp.parse(state.value)
    except MalformedError:
        return None


def is_same_version(new: SourceState | None, state: SourceState | None) -> bool:
    """Say whether two states name the same version; states of unknown kinds are never the same."""
    if find_etag(new) is not None:
        return find_etag(new) == find_etag(state)
    return find_last_modified(new) is not None and find_last_modified(new) == find_last_modified(state)


CURSOR: Final = "odf-node/table-cursor"
"""The kind of a source state: how far a table was read. Other nodes do not know it, and read the rows all the same."""

_USUAL_ROWS: Final = "100000"  # guess: a batch of some megabytes
_MAX_ROWS: Final = 10_000_000  # guess: as many as one ingest should have


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
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_ROWS))
    return int(text) if is_number and 1 <= int(text) <= _MAX_ROWS else None
