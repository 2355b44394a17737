import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from odf_node.ports.sources import Fetched, SourceNotFoundError, SourceTooLargeError, SourceUnavailableError, UpToDate
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_node.sources.source_state import etag_state, last_modified_state
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

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
MTIME_NS = 1_600_000_000_123_567_891
ROUNDED = Timestamp.from_unix_ms(1_600_000_000_124)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "data with space.csv"
    path.write_text("a\n1\n")
    os.utime(path, ns=(MTIME_NS, MTIME_NS))
    return path


def _fetch(
    step: FetchStepUrl | FetchStepFilesGlob, folder: Path, state: SourceState | None = None, size_bytes: int = 1000
) -> Fetched | UpToDate:
    reader = LocalSourceReader(limits=SourceLimits(size_bytes=size_bytes))
    return asyncio.run(reader.fetch(step, state=state, now=NOW, folder=folder))


def test_file_is_copied_and_dated_by_its_rounded_mtime(source: Path, tmp_path: Path) -> None:
    (copies := tmp_path / "copies").mkdir()
    result = _fetch(FetchStepUrl(url=source.as_uri()), copies)
    assert isinstance(result, Fetched)
    assert result == Fetched(
        path=result.path, name=source.as_uri(), source_state=last_modified_state(ROUNDED), event_time=ROUNDED
    )
    assert result.path.parent == copies
    source.write_text("changed afterwards")
    assert result.path.read_text() == "a\n1\n"


def test_file_of_the_same_date_is_up_to_date(source: Path, tmp_path: Path) -> None:
    step = FetchStepUrl(url=source.as_uri())
    assert _fetch(step, tmp_path, last_modified_state(ROUNDED)) == UpToDate()
    assert _fetch(step, tmp_path, replace(last_modified_state(ROUNDED), kind="other")) != UpToDate()
    os.utime(source, ns=(MTIME_NS + 1_000_000, MTIME_NS + 1_000_000))
    assert _fetch(step, tmp_path, last_modified_state(ROUNDED)) != UpToDate()


def test_event_time_of_a_file_from_system_time_is_now(source: Path, tmp_path: Path) -> None:
    result = _fetch(FetchStepUrl(url=source.as_uri(), event_time=EventTimeSourceFromSystemTime()), tmp_path)
    assert isinstance(result, Fetched)
    assert result.event_time == NOW


def test_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match=r"absent\.csv: no such file"):
        _fetch(FetchStepUrl(url=(tmp_path / "absent.csv").as_uri()), tmp_path)


@pytest.mark.parametrize("url", ["file://host/x", "file:relative", "file:///x?y", "file://"])
def test_url_that_names_no_local_file_is_malformed(url: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="file URL"):
        _fetch(FetchStepUrl(url=url), tmp_path)


def test_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="plain file"):
        _fetch(FetchStepUrl(url=tmp_path.as_uri()), tmp_path)


def test_pipe_is_no_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MalformedError, match="plain file"):
        _fetch(FetchStepUrl(url=(tmp_path / "pipe").as_uri()), tmp_path)


def test_too_large_file_is_rejected(source: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceTooLargeError, match="size_bytes"):
        _fetch(FetchStepUrl(url=source.as_uri()), tmp_path, size_bytes=3)


# Patterns


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("d-2020-01-03.csv", "d-2020-01-01.csv", "d-2020-01-02.csv", "other.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_matches_are_taken_one_by_one_in_order_of_names(folder: Path) -> None:
    step = FetchStepFilesGlob(path=f"{folder}/d-*.csv", order=SourceOrdering.BY_NAME)
    state, taken, more = None, [], []
    while isinstance(result := _fetch(step, folder, state), Fetched):
        taken.append(Path(result.name).name)
        more.append(result.has_more)
        state = result.source_state
        assert state == etag_state(taken[-1])
        assert result.event_time == NOW
    assert taken == ["d-2020-01-01.csv", "d-2020-01-02.csv", "d-2020-01-03.csv"]
    assert more == [True, True, False]


@pytest.mark.parametrize(
    ("pattern", "time_format", "expected"),
    [
        (r"d-(\d+-\d+-\d+)\.csv", None, "2020-01-01T00:00:00Z"),
        (r"(2020-01)", "%Y-%m", "2020-01-01T00:00:00Z"),
    ],
)
def test_event_time_is_read_from_the_name(folder: Path, pattern: str, time_format: str | None, expected: str) -> None:
    source = EventTimeSourceFromPath(pattern=pattern, timestamp_format=time_format)
    result = _fetch(FetchStepFilesGlob(path=f"{folder}/d-*.csv", event_time=source), folder)
    assert isinstance(result, Fetched)
    assert str(result.event_time) == expected


@pytest.mark.parametrize(
    ("pattern", "time_format"),
    [
        ("(", None),
        ("no such", None),
        ("d-2020", None),
        ("(d-)", None),
        (r"d-(\S+)\.csv", "%Q"),
        (r"d-(\S+)\.csv", "%Y%Y"),
        (r"(?=d)(.)", None),
        (r"a)|(d", None),
        ("(d)" * 400, None),
        (r"d-(\S+)\.csv", "%Y" + "-" * 100),
    ],
    ids=[
        "no-regex",
        "no-match",
        "no-group",
        "no-time",
        "no-format",
        "part-twice",
        "looks-ahead",
        "two-halves",
        "long-pattern",
        "long-format",
    ],
)
def test_event_time_that_cannot_be_read_is_named(folder: Path, pattern: str, time_format: str | None) -> None:
    source = EventTimeSourceFromPath(pattern=pattern, timestamp_format=time_format)
    with pytest.raises(MalformedError, match="event time"):
        _fetch(FetchStepFilesGlob(path=f"{folder}/d-*.csv", event_time=source), folder)


def test_pattern_that_goes_back_takes_no_time_sandbox_18(folder: Path) -> None:
    """An event time is looked for in the node itself, where nothing else would run meanwhile."""
    (folder / f"d-{'a' * 200}b.csv").touch()
    source = EventTimeSourceFromPath(pattern=r"d-((a+)+)$", timestamp_format=None)
    started = time.process_time()
    with pytest.raises(MalformedError, match="event time"):
        _fetch(FetchStepFilesGlob(path=f"{folder}/d-a*.csv", event_time=source), folder)
    assert time.process_time() - started < 5


def test_pattern_without_match_is_not_found(folder: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no file matches"):
        _fetch(FetchStepFilesGlob(path=f"{folder}/x-*.csv"), folder)


def test_options_of_patterns_that_are_not_supported_are_named(folder: Path) -> None:
    for step in (
        FetchStepFilesGlob(path=f"{folder}/*", order=SourceOrdering.BY_EVENT_TIME),
        FetchStepFilesGlob(path=f"{folder}/*", event_time=EventTimeSourceFromMetadata()),
    ):
        with pytest.raises(UnsupportedError):
            _fetch(step, folder)


def test_file_that_changes_while_it_is_copied_is_unavailable_and_leaves_nothing(tmp_path: Path) -> None:
    source, folder = tmp_path / "growing.csv", tmp_path / "copies"
    folder.mkdir()
    with source.open("wb") as file:
        file.truncate(200 * 1024**2)
    ended = threading.Event()

    def touch() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            os.utime(source, ns=(number, number))

    with ThreadPoolExecutor(1) as writer:
        writer.submit(touch)
        try:
            with pytest.raises(SourceUnavailableError, match="changed while it was read"):
                _fetch(FetchStepUrl(url=source.as_uri()), folder, size_bytes=10**9)
        finally:
            ended.set()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("pattern", ["*.csv", "data/*.csv", "./a.csv", "file:data/*.csv"])
def test_relative_pattern_is_rejected_as_nobody_knows_where_it_will_be_run(pattern: str, folder: Path) -> None:
    with pytest.raises(MalformedError, match="absolute"):
        _fetch(FetchStepFilesGlob(path=pattern), folder)
