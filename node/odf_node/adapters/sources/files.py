"""Fetch local files: one by URL, or the next one that matches a pattern. Files are read where they are."""

import glob
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from odf_node.adapters.sources.limits import SourceLimits
from odf_node.adapters.sources.source_state import etag_state, find_etag, find_last_modified, last_modified_state
from odf_node.ports.sources import Fetched, SourceNotFoundError, SourceTooLargeError, SourceUnavailableError, UpToDate
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStepFilesGlob,
    FetchStepUrl,
    SourceOrdering,
    SourceState,
)
from odf_protocol.timestamp import Timestamp

_DEFAULT_TIME_FORMAT: Final = "%Y-%m-%d"
_NANOSECONDS_PER_MS: Final = 1_000_000


def fetch_file(
    step: FetchStepUrl, *, state: SourceState | None, now: Timestamp, limits: SourceLimits
) -> Fetched | UpToDate:
    """Fetch a ``file`` URL; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise UnsupportedError("event time of a URL source", found="FromPath", supported="FromMetadata, FromSystemTime")
    path = parse_file_url(step.url)
    modified_at = _inspect(path, step.url, limits)
    if find_last_modified(state) == modified_at:
        return UpToDate()
    return Fetched(
        path=path,
        name=step.url,
        source_state=last_modified_state(modified_at),
        event_time=now if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified_at,
    )


def fetch_next_match(
    step: FetchStepFilesGlob, *, state: SourceState | None, now: Timestamp, limits: SourceLimits
) -> Fetched | UpToDate:
    """Fetch the file whose name follows the one in ``state``, in order of names; see ``SourceReader.fetch``."""
    if step.order is SourceOrdering.BY_EVENT_TIME:
        raise UnsupportedError("order of a files source", found="ByEventTime", supported="ByName")
    if isinstance(step.event_time, EventTimeSourceFromMetadata):
        raise UnsupportedError("event time of a files source", found="FromMetadata", supported="FromPath")
    last_name = find_etag(state)
    pattern = str(parse_file_url(step.path)) if step.path.startswith("file:") else step.path
    matches = sorted((Path(match) for match in glob.glob(pattern)), key=lambda path: path.name)  # noqa: PTH207 - absolute patterns
    newer = [path for path in matches if last_name is None or path.name > last_name]
    if not newer:
        if not matches:
            raise SourceNotFoundError(step.path, "no file matches")
        return UpToDate()
    path = newer[0]
    _inspect(path, str(path), limits)
    return Fetched(
        path=path,
        name=str(path),
        source_state=etag_state(path.name),
        event_time=_read_event_time(step, path.name, now),
        has_more=len(newer) > 1,
    )


def parse_file_url(url: str) -> Path:
    """Read the path in a ``file`` URL.

    Raises:
        MalformedError: It names a host, a query, or a relative path.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in {"", "localhost"} or parts.query or parts.fragment or not path.startswith("/"):
        raise MalformedError("file URL", expected="file:///absolute/path", found=url)
    return Path(path)


def _inspect(path: Path, source: str, limits: SourceLimits) -> Timestamp:
    try:
        entry = path.stat()
    except FileNotFoundError:
        raise SourceNotFoundError(source, "no such file") from None
    except (OSError, ValueError) as error:
        raise SourceUnavailableError(source, f"the file cannot be read: {error}") from error
    if not stat.S_ISREG(entry.st_mode):
        raise MalformedError("source", where=source, expected="a plain file", found="a folder or special file")
    if entry.st_size > limits.size_bytes:
        raise SourceTooLargeError(source, "size_bytes", limits.size_bytes)
    # Rounded, not cut, to the milliseconds that a state can hold: the reference implementation does so.
    return Timestamp.from_unix_ms((entry.st_mtime_ns + _NANOSECONDS_PER_MS // 2) // _NANOSECONDS_PER_MS)


def _read_event_time(step: FetchStepFilesGlob, name: str, now: Timestamp) -> Timestamp:
    source = step.event_time
    if not isinstance(source, EventTimeSourceFromPath):
        return now
    time_format = source.timestamp_format or _DEFAULT_TIME_FORMAT
    try:
        found = re.search(source.pattern, name)
    except re.error as error:
        raise MalformedError("pattern of an event time", expected="a regular expression", found=str(error)) from error
    if found is None or not found.groups() or found[1] is None:
        raise MalformedError("event time", where=name, expected=f"a match of {source.pattern} with a group", found=name)
    try:
        time = datetime.strptime(found[1], time_format)  # noqa: DTZ007 - the zone follows
    except ValueError as error:
        raise MalformedError("event time", where=name, expected=time_format, found=found[1]) from error
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return Timestamp(int(aware.timestamp()), aware.microsecond * 1000)
