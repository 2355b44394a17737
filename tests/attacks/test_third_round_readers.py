"""Readers of servers that a server took over: however they end, and whatever they say, it is the source's fault.

Source: ING-31 and ING-34 in ``spec/ingest.md``.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from odf_node.adapters.sources.limits import FetchContext, SourceLimits
from odf_node.adapters.sources.reader_process import run_reader
from odf_node.byte_rate import ByteRate
from odf_protocol.errors import OdfError
from odf_protocol.timestamp import Timestamp

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
    context = FetchContext(None, Timestamp.from_unix_ms(0), tmp_path, SourceLimits(answer_s=20), ByteRate())
    target = tmp_path / "rows"

    with pytest.raises(OdfError) as raised:
        asyncio.run(run_reader("postgres", {}, target=target, name="demo", context=context))

    assert "demo" in str(raised.value)
    assert not target.exists()
