"""Clause SANDBOX-9: ending a sandbox ends all of it, also while it begins."""

import sys
from pathlib import Path

import pytest

from odf_engines.contract import Limits
from odf_engines.sandbox import process
from odf_engines.sandbox.process import SandboxedProcess
from support.command_line import are_gone, wait_until
from support.sandboxes import small_profile

BEGINNING = """
import os, time
if not os.fork():
    os.setsid()
    print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.mark.timeout(60)
def test_first_process_that_has_not_yet_asked_to_die_with_the_outermost_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the pipes, for whose ends whoever ends the sandbox waits; chance alone makes bubblewrap stand there."""
    monkeypatch.setattr(process, "build_command", lambda *_, **__: [sys.executable, "-c", BEGINNING])
    begun = SandboxedProcess(small_profile(tmp_path), [], Limits())
    child = int(begun.receive(50))
    begun.kill()
    wait_until(lambda: are_gone({child}), "the end of the first process")
