"""Readers of servers that a server took over: however they end, and whatever they say, it is the source's fault.

Source: ING-31 and ING-34 in ``spec/ingest.md``.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from odf_node.ports.sources import SourceUnavailableError
from odf_node.sources.contract import FetchContext, SourceSettings
from odf_node.sources.limits import SourceLimits
from odf_node.sources.reader_process import run_reader
from odf_protocol.errors import OdfError
from odf_protocol.events import FetchStepFilesGlob, FetchStepUrl
from odf_protocol.timestamp import Timestamp
from odf_sources.bucket import fetch_next_object, fetch_object
from odf_sources.ftp import fetch_ftp

ENDS = {
    "killed": "kill -9 $$",
    "crashed": "kill -11 $$",
    "killed-by-a-signal-without-a-name": "kill -35 $$",
    "killed-by-another-signal-without-a-name": "kill -63 $$",
    "ended-with-a-code": "exit 77",
    "said-nothing": "exit 0",
    "said-no-JSON": "echo nonsense >&2",
    "said-bytes-that-are-no-text": r"printf '\377\376' >&2",
    "said-a-number": "echo 7 >&2",
    "said-a-text": "echo '\"error\"' >&2",
    "said-null": "echo null >&2",
    "said-an-error-that-is-none": "echo '{\"error\": 7}' >&2",
    "said-an-error-without-its-kind": "echo '{\"error\": {}}' >&2",
    "said-an-error-of-lists": "echo '{\"error\": []}' >&2",
    "said-deep-JSON": "head -c 60000 /dev/zero | tr '\\0' '[' >&2",
    "said-a-line-longer-than-any": "head -c 300000 /dev/zero | tr '\\0' '9' >&2",
    "said-its-answer-and-then-failed": "echo '{\"last\": 1}' >&2; exit 3",
    "gave-bytes-and-then-crashed": "echo rows; kill -11 $$",
}


@pytest.mark.parametrize("end", ENDS)
def test_reader_that_ends_otherwise_is_told_as_the_sources_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """ING-34: nothing of it is a fault of the daemon, and no half of a file stays."""
    program = tmp_path / "reader"
    program.write_text(f"#!/bin/sh\n{ENDS[end]}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    context = FetchContext(None, Timestamp.from_unix_ms(0), tmp_path, SourceSettings(limits=SourceLimits(answer_s=20)))
    target = tmp_path / "rows"

    with pytest.raises(OdfError) as raised:
        asyncio.run(run_reader("postgres", {}, target=target, name="demo", context=context))

    assert "demo" in str(raised.value)
    assert not target.exists()


ANSWERS = {
    "nothing": '{"is_new": true}',
    "numbers-for-names": '{"is_new": true, "etag": 7, "name": 7, "path": 7, "has_more": 7, "waiting": 7}',
    "time-beyond-any": '{"is_new": true, "etag": null, "modified_ms": 99999999999999999999, "name": "a"}',
    "text-for-a-list": '{"is_new": true, "name": "a", "path": "a", "has_more": true, "waiting": "abc"}',
    "maps": '{"is_new": true, "etag": {}, "modified_ms": {}, "name": {}, "path": {}, "waiting": {}}',
}
SOURCES = {
    "object": lambda context: fetch_object(FetchStepUrl(url="s3+http://127.0.0.1:9/bucket/a"), context),
    "objects": lambda context: fetch_next_object(FetchStepFilesGlob(path="s3+http://127.0.0.1:9/bucket/*"), context),
    "ftp": lambda context: fetch_ftp(FetchStepUrl(url="ftp://127.0.0.1:9/a"), context),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("source", SOURCES)
def test_answer_of_other_members_is_the_sources_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, answer: str
) -> None:
    """ING-45: a reader in the hands of its server says what is no answer."""
    program = tmp_path / "reader"
    program.write_text(f"#!/bin/sh\necho '{ANSWERS[answer]}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    context = FetchContext(None, Timestamp.from_unix_ms(0), tmp_path, SourceSettings(limits=SourceLimits(answer_s=20)))

    if source == "ftp" and answer in {"nothing", "numbers-for-names", "text-for-a-list"}:
        asyncio.run(SOURCES[source](context))  # a date is all that it says, and may be left out
        return
    if source == "object" and answer in {"nothing", "text-for-a-list"}:
        asyncio.run(SOURCES[source](context))
        return
    with pytest.raises(SourceUnavailableError, match="gave no answer that counts"):
        asyncio.run(SOURCES[source](context))
