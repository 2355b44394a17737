"""Fetch local files: one by URL, the next one that matches a pattern, or one that is pushed.

Each is opened here, by the process that was asked for it, and copied: engines work elsewhere, where a relative path
means another file, and read their input several times, while its owner may write to it.

Source: clause ING-14 in ``spec/ingest.md``.
"""

import asyncio
import glob
import os
import re
import secrets
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from odf_node.adapters.next_match import advise_on_pattern, list_newer
from odf_node.ports.sources import (
    Fetched,
    SourceNotFoundError,
    SourceRejectedError,
    SourceTooLargeError,
    SourceUnavailableError,
    UpToDate,
)
from odf_node.sources.checks import TEMPLATE, check_value
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.limits import BoundedFile, SourceLimits
from odf_node.sources.source_state import etag_state, find_etag, find_last_modified, last_modified_state
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStep,
    FetchStepFilesGlob,
    FetchStepUrl,
    SourceOrdering,
)
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp

_DEFAULT_TIME_FORMAT: Final = "%Y-%m-%d"
_MAX_PATTERN_CHARACTERS: Final = 1_000  # guess: of names of files, which have 255
_MAX_TIME_FORMAT_CHARACTERS: Final = 100  # guess
_NANOSECONDS_PER_MS: Final = 1_000_000
_CHUNK_BYTES: Final = 1024 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class FileSource(SourceKind):
    """Files of this machine: one by its URL, or those that match a pattern."""

    steps = (FetchStepUrl, FetchStepFilesGlob)
    schemes = ("file",)
    form = "file:///absolute/path"

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        if isinstance(step, FetchStepUrl):
            if TEMPLATE not in step.url:
                check_value(lambda: parse_file_url(step.url), at / "url")
        elif isinstance(step, FetchStepFilesGlob):
            if not step.path.startswith(TEMPLATE):
                check_value(lambda: parse_pattern(step.path), at / "path")
            check_value(lambda: check_order(step), at / "order")
            check_value(lambda: check_event_time(step), at / "eventTime")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        if isinstance(step, FetchStepFilesGlob):
            return await asyncio.to_thread(fetch_next_match, step, context)
        assert isinstance(step, FetchStepUrl)
        return await asyncio.to_thread(fetch_file, step, context)


def fetch_file(step: FetchStepUrl, context: FetchContext) -> Fetched | UpToDate:
    """Fetch a ``file`` URL; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise UnsupportedError("event time of a URL source", found="FromPath", supported="FromMetadata, FromSystemTime")
    path = parse_file_url(step.url)
    if find_last_modified(context.state) == _dated(inspect_file(path, step.url, context.limits)):
        return UpToDate()
    copy, modified_at = _copy_file(path, step.url, context.folder, context.limits)
    return Fetched(
        path=copy,
        name=step.url,
        source_state=last_modified_state(modified_at),
        event_time=context.now if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified_at,
    )


def fetch_next_match(step: FetchStepFilesGlob, context: FetchContext) -> Fetched | UpToDate:
    """Fetch the file whose name follows the one in ``state``, in order of names; see ``SourceReader.fetch``."""
    check_order(step)
    check_event_time(step)
    last_name = find_etag(context.state)
    pattern = parse_pattern(step.path)
    matches = [Path(match) for match in glob.glob(pattern)]  # noqa: PTH207 - absolute patterns
    newer = list_newer(matches, last_name, step.path)
    if not newer:
        if not matches:
            raise SourceNotFoundError(step.path, "no file matches")
        return UpToDate()
    path = newer[0]
    event_time = read_event_time(step, path.name, context.now)
    inspect_file(path, str(path), context.limits)
    copy, _ = _copy_file(path, str(path), context.folder, context.limits)
    return Fetched(
        path=copy,
        name=str(path),
        source_state=etag_state(path.name),
        event_time=event_time,
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


def check_order(step: FetchStepFilesGlob) -> None:
    """Make sure that files are taken in an order that is built.

    Raises:
        UnsupportedError: They are not.
    """
    if step.order is SourceOrdering.BY_EVENT_TIME:
        raise UnsupportedError("order of a files source", found="ByEventTime", supported="ByName")


def check_event_time(step: FetchStepFilesGlob) -> None:
    """Make sure that the event time of a files source can be had.

    Raises:
        UnsupportedError: It is not built.
        MalformedError: Its pattern is no regular expression with a group.
    """
    if isinstance(step.event_time, EventTimeSourceFromMetadata):
        raise UnsupportedError("event time of a files source", found="FromMetadata", supported="FromPath")
    if isinstance(step.event_time, EventTimeSourceFromPath):
        _find_group(step.event_time.pattern, "")
        _check_time_format(step.event_time.timestamp_format or _DEFAULT_TIME_FORMAT)


def parse_pattern(text: str) -> str:
    """Read the pattern of a files source: of absolute paths, as nobody knows in which folder a later pull is run.

    Raises:
        MalformedError: It is relative, or a URL that is no plain ``file`` URL.
    """
    pattern = str(parse_file_url(text)) if text.startswith("file:") else text
    if not pattern.startswith("/"):
        raise MalformedError("pattern of a files source", expected="an absolute path such as /data/*.csv", found=text)
    return pattern


def take_file(source: Path | BinaryIO, *, name: str, folder: Path, limits: SourceLimits) -> Path:
    """Copy a file, or what is left of a stream, into ``folder``; see ``SourceReader.take``."""
    if isinstance(source, Path):
        return _copy_file(source, name, folder, limits)[0]
    target = folder / f"taken-{secrets.token_hex(8)}"
    _copy_stream(source, target, name, limits)
    return target


def _copy_file(path: Path, source: str, folder: Path, limits: SourceLimits) -> tuple[Path, Timestamp]:
    """Return a copy, and the date of exactly the bytes that were copied."""
    target = folder / f"taken-{secrets.token_hex(8)}"
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise SourceNotFoundError(source, f"no such file{advise_on_pattern(str(path))}") from None
    except (OSError, ValueError) as error:
        raise SourceUnavailableError(source, f"the file cannot be read: {error}") from error
    with file:
        before = os.fstat(file.fileno())
        _copy_stream(file, target, source, limits)
        after = os.fstat(file.fileno())
    if stat.S_ISREG(before.st_mode) and (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        target.unlink()
        raise SourceUnavailableError(source, "the file changed while it was read; try again when it is complete")
    return target, _dated(before)


def _copy_stream(stream: BinaryIO, target: Path, source: str, limits: SourceLimits) -> None:
    with BoundedFile(target, source, limits) as copy:
        try:
            while chunk := stream.read(_CHUNK_BYTES):
                copy.write(chunk)
        except OSError as error:
            raise SourceUnavailableError(source, f"it cannot be read: {error.strerror or error}") from error


def inspect_file(path: Path, source: str, limits: SourceLimits) -> os.stat_result:
    """Look at a file that is to be read.

    Raises:
        SourceNotFoundError, SourceUnavailableError, SourceTooLargeError: It cannot be.
        SourceRejectedError: It holds secrets of this node, wherever a link to it lies.
        MalformedError: It is no plain file.
    """
    try:
        entry, place = path.stat(), path.resolve()
    except FileNotFoundError:
        raise SourceNotFoundError(source, f"no such file{advise_on_pattern(str(path))}") from None
    except (OSError, ValueError) as error:
        raise SourceUnavailableError(source, f"the file cannot be read: {error}") from error
    is_inside = any(place.is_relative_to(folder.resolve()) for folder in limits.closed)
    if is_inside or (entry.st_nlink > 1 and _is_secret(entry, limits)):
        raise SourceRejectedError(source, "closed-folder", "it holds secrets of this node, and is no source of rows")
    if not stat.S_ISREG(entry.st_mode):
        raise MalformedError("source", where=source, expected="a plain file", found="a folder or special file")
    if entry.st_size > limits.size_bytes:
        raise SourceTooLargeError(source, "size_bytes", limits.size_bytes)
    return entry


def _is_secret(entry: os.stat_result, limits: SourceLimits) -> bool:
    """Whether a file is one with secrets under another name (a hard link)."""
    return any(
        os.path.samestat(entry, secret.stat())
        for folder in limits.secrets
        for secret in (folder.rglob("*") if folder.is_dir() else [folder] if folder.exists() else [])
    )


def _dated(entry: os.stat_result) -> Timestamp:
    # Rounded, not cut, to the milliseconds that a state can hold: the reference implementation does so.
    return Timestamp.from_unix_ms((entry.st_mtime_ns + _NANOSECONDS_PER_MS // 2) // _NANOSECONDS_PER_MS)


def read_event_time(step: FetchStepFilesGlob, name: str, now: Timestamp) -> Timestamp:
    """Read the event time of a file from its name, where the step says so.

    Raises:
        MalformedError: The name does not match, or what does is no time.
    """
    source = step.event_time
    if not isinstance(source, EventTimeSourceFromPath):
        return now
    time_format = source.timestamp_format or _DEFAULT_TIME_FORMAT
    found = _find_group(source.pattern, name)
    if found is None:
        raise MalformedError("event time", where=name, expected=f"a match of {source.pattern} with a group", found=name)
    try:
        time = datetime.strptime(found, time_format)  # noqa: DTZ007 - the zone follows
    except (ValueError, re.error) as error:
        raise MalformedError("event time", where=name, expected=time_format, found=found) from error
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return Timestamp((aware - _EPOCH) // timedelta(seconds=1), aware.microsecond * 1000)


def _find_group(pattern: str, name: str) -> str | None:
    """Find what the first group of a pattern has in its first match in a name; None: nothing matches, or no such group.

    RE2 looks, whose time is linear in the name: Python's own engine goes back for years for some patterns.

    Raises:
        MalformedError: It is no such pattern, or has no group.
    """
    what = "pattern of an event time"
    expected = "a regular expression (RE2) with a group"
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        raise MalformedError(what, expected=f"at most {_MAX_PATTERN_CHARACTERS} characters", found=str(len(pattern)))
    whole = rf"\A(?s:.*?)(?:{pattern})(?s:.*)\z"
    try:
        names = pa.array([name], pa.string())
        # With the anchors of the line around it, a pattern could end their group; by itself it could not be compiled.
        matches = pc.match_substring_regex(names, pattern)[0].as_py()
        found: str = pc.replace_substring_regex(names, whole, r"\1")[0].as_py()
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise MalformedError(what, where=name or None, expected=expected, found=str(error)[:200]) from error
    return found if matches and found else None


def _check_time_format(text: str) -> None:
    """Check a format before a file is asked for its time.

    Raises:
        MalformedError: It is long, names a part twice, or one that is not known.
    """
    what, expected = "format of an event time", f"at most {_MAX_TIME_FORMAT_CHARACTERS} characters"
    if len(text) > _MAX_TIME_FORMAT_CHARACTERS:
        raise MalformedError(what, expected=expected, found=f"{len(text)} characters")
    try:
        datetime.strptime("", text)  # noqa: DTZ007 - for its error
    except re.error as error:  # ``strptime`` makes an expression of it
        raise MalformedError(what, expected="each part once", found=text) from error
    except ValueError as error:
        if "directive" in str(error) or "stray" in str(error):
            raise MalformedError(what, expected="parts as %Y-%m-%d", found=str(error)) from error
