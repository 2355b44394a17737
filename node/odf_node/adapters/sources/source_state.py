"""What a source said about its version, as it is kept in AddData blocks.

Source: ODF "SourceState" (kinds ``odf/etag`` and ``odf/last-modified``).
"""

from typing import Final

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
