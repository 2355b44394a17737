"""Clauses SANDBOX-9 and SANDBOX-10: how sandboxes end, and what is waited for; also where somebody is stopped."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from odf_engines.confined import process
from odf_engines.confined.caller import CallerConfinedProcess
from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits
from odf_engines.errors import LimitExceededError
from odf_engines.sandbox.profile import Profile
from support.command_line import are_gone, wait_until
from support.sandboxes import receive_line, small_profile

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
    child = int(receive_line(begun, 50))
    begun.kill()
    wait_until(lambda: are_gone({child}), "the end of the first process")


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> SandboxedProcess:
    """Run Python as if it were in a sandbox: what it is asked and answers goes the same way."""
    monkeypatch.setattr(process, "build_command", lambda *_, **__: [sys.executable, "-c", program])
    return SandboxedProcess(small_profile(folder), [], Limits())


def test_answer_that_came_while_who_waits_was_stopped_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = tmp_path / "said"
    program = f"import pathlib\nprint('answer', flush=True)\npathlib.Path({str(stated)!r}).touch()\ninput()"
    with run(monkeypatch, tmp_path, program) as begun:
        wait_until(stated.exists, "the answer")
        assert receive_line(begun, -60.0) == b"answer"
        with pytest.raises(LimitExceededError, match="wall_s"):
            receive_line(begun, -60.0)


@pytest.mark.timeout(60)
def test_process_that_reads_no_request_is_not_waited_for_longer_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = run(monkeypatch, tmp_path, "import time; print('ready', flush=True); time.sleep(600)")
    receive_line(begun, 50)
    with pytest.raises(LimitExceededError, match="wall_s"):
        begun.send(bytes(1_000_000), 0.1)
    assert not begun.is_running


def test_large_request_is_read_as_it_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run(monkeypatch, tmp_path, "print(len(input()), flush=True); input()") as begun:
        begun.send(b"x" * 1_000_000 + b"\n", 50)
        assert receive_line(begun, 50) == b"1000000"


DAEMON = """
import os, sys, time
if not os.fork():
    os.setsid()
    print(os.getpid(), flush=True)
    time.sleep(600)
"""


@pytest.mark.timeout(60)
def test_process_outside_of_the_group_keeps_nobody_waiting_for_the_log(tmp_path: Path) -> None:
    """Without a sandbox of its own such a process ends with the container; it holds what the log is read from."""
    begun = CallerConfinedProcess(Profile(mounts=()), [sys.executable, "-c", DAEMON], Limits())
    child = int(receive_line(begun, 50))
    try:
        ending = threading.Thread(target=begun.kill, daemon=True)
        ending.start()
        ending.join(20)
        assert not ending.is_alive()
    finally:
        os.kill(child, signal.SIGKILL)
        ending.join()
    wait_until(lambda: are_gone({child}), "the end of the other")
