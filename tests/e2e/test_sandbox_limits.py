"""Clauses SANDBOX-7 to SANDBOX-10: a process that uses too much is stopped, all of it, and the reason is told."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from odf_engines.confined import process as sandbox_process
from odf_engines.confined.process import SandboxedProcess
from odf_engines.confined.program import ConfinedProgram
from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.sandbox.resources import kernel_limits, usage_of
from support.sandboxes import MIB, PYTHON, receive_line, run_inside, small_profile

WALL_S = 240.0

WITH_KERNEL_LIMITS = """
import sys
sys.path.insert(0, "/runtime/ours")
from odf_engines.sandbox.resources import set_kernel_limits
set_kernel_limits({limits})
"""


@pytest.fixture
def start(tmp_path):
    """Start code in a watched sandbox; every one is ended after the test."""
    started = []
    writable = tmp_path / "out"
    writable.mkdir()
    profile = small_profile(tmp_path, writable=writable, memory_bytes=256 * MIB)

    def start_process(code, **limits):
        process = SandboxedProcess(profile, [*PYTHON, code], Limits(**limits), writable=[writable])
        started.append(process)
        return process

    yield start_process
    for process in started:
        process.kill()


def stopped_by(process):
    with pytest.raises(LimitExceededError) as caught:
        receive_line(process, WALL_S)
    assert not process.is_running
    return caught.value


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (["/no/such/program"], "the engine ended without an answer (exit code 1): bwrap: execvp /no/such/program: "),
        # What runs inside cannot speak in bubblewrap's name behind words of its own.
        ([*PYTHON, "import sys; sys.exit('So\\nbwrap: me')"], "the engine ended without an answer (exit code 1)"),
        ([*PYTHON, "import sys; sys.exit('bwrap: ' + 'x' * 10_000)"], f"(exit code 1): bwrap: {'x' * 493}"),
    ],
)
def test_sandbox_that_does_not_begin_says_why(tmp_path, program, shown):
    """SANDBOX-10."""
    with SandboxedProcess(small_profile(tmp_path), program, Limits()) as process:
        with pytest.raises(EngineFailureError) as caught:
            receive_line(process, WALL_S)
        assert shown in caught.value.message
        assert caught.value.message.endswith(shown) or "No such file" in caught.value.message


def test_silence_is_stopped_at_the_wall(start):
    process = start("import time; time.sleep(600)")
    started = time.monotonic()
    with pytest.raises(LimitExceededError) as caught:
        receive_line(process, 0.5)
    assert caught.value.limit == "wall_s"
    assert time.monotonic() - started < 240
    assert not process.is_running


def test_endless_answer_is_stopped(start):
    process = start("import sys\nwhile True: sys.stdout.write('x' * 65536)")
    with pytest.raises(EngineFailureError, match="4194304 bytes"):
        ConfinedProgram(process).ask("any", {}, wall_s=WALL_S)
    assert not process.is_running


def test_endless_log_is_cut(start):
    process = start(
        "import sys\nfor n in range(300): sys.stderr.write('x' * 65536)\nprint('done', flush=True)\ninput()"
    )
    assert receive_line(process, WALL_S) == b"done"
    assert len(process.log) <= 3 * 64 * 1024


def test_end_of_a_process_tells_its_code_and_log(start):
    process = start("import sys; print('why', file=sys.stderr); sys.exit(7)")
    with pytest.raises(EngineFailureError, match="code 7") as caught:
        receive_line(process, WALL_S)
    assert "why" in caught.value.log


def test_processor_time_that_the_kernel_ended_is_told_by_its_signal(start, monkeypatch):
    monkeypatch.setattr(SandboxedProcess, "_find_crossed", lambda self: None)
    limits = kernel_limits(memory_bytes=2**30, cpu_s=1, file_bytes=2**30, processes=100)
    process = start(WITH_KERNEL_LIMITS.format(limits=json.dumps(limits)) + "while True: pass", cpu_s=1)
    error = stopped_by(process)
    assert (error.limit, error.allowed) == ("cpu_s", 1)


@pytest.mark.parametrize("cpu_s", [1, 60])
def test_kill_by_somebody_else_is_never_told_as_a_limit(start, cpu_s):
    process = start("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", cpu_s=cpu_s)
    with pytest.raises(EngineFailureError, match="exit code 137"):
        receive_line(process, WALL_S)


def test_sandbox_outlives_the_thread_that_asked_for_it(start):
    def start_and_wait():
        process = start("print('up', flush=True)\nprint(input(), flush=True)\ninput()")
        assert receive_line(process, WALL_S) == b"up"
        return process

    with ThreadPoolExecutor(1) as thread:
        process = thread.submit(start_and_wait).result()
    time.sleep(0.3)  # the thread is gone for Python a little before it is for the kernel
    process.send(b"here\n", 240)
    assert receive_line(process, WALL_S) == b"here"


def test_everything_dies_with_the_outermost_process(start):
    process = start("import os, time\nos.fork(); os.fork()\nprint('up', flush=True)\ntime.sleep(600)")
    receive_line(process, WALL_S)
    assert usage_of(process.process_id).processes >= 4
    process.kill()
    assert usage_of(process.process_id).processes == 0


def test_memory_that_a_fork_shares_for_a_moment_is_counted_once(start, monkeypatch):
    shown = []

    def look(process_id):
        usage = usage_of(process_id)
        if usage.memory_bytes > 160 * MIB:
            shown.append(usage.memory_bytes)
            os.kill(usage.process_ids[-1], signal.SIGKILL)  # the fork, which was looked at as it stood
        return usage

    monkeypatch.setattr(sandbox_process, "usage_of", look)
    code = (
        "import os, signal\nheld = b'x' * (96 * 2**20)\n"
        "if not os.fork():\n    signal.pause()\n"
        "os.wait()\nprint('done', flush=True)\ninput()"
    )
    assert receive_line(start(code, memory_bytes=160 * MIB), WALL_S) == b"done"
    assert shown


@pytest.mark.parametrize(
    ("limits", "code", "complaint"),
    [
        pytest.param({"file_bytes": MIB}, "open('/scratch/x', 'wb').write(bytes(2**21))", "File too large", id="file"),
        pytest.param({"memory_bytes": 0}, "bytearray(7 * 2**30)", "MemoryError", id="address-space"),
        pytest.param({"cpu_s": 1}, "while True: pass", "", id="processor-time"),
        pytest.param({}, "[open('/dev/null') for _ in range(5000)]", "Too many open files", id="open-files"),
        pytest.param({}, "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (9999, 9999))", "not allowed", id="raise"),
    ],
)
def test_kernel_limits_hold_and_cannot_be_raised(tmp_path, limits, code, complaint):
    profile = small_profile(tmp_path, memory_bytes=64 * MIB)
    usual = {"memory_bytes": 2**30, "cpu_s": 60, "file_bytes": 2**30, "processes": 100}
    prepared = WITH_KERNEL_LIMITS.format(limits=json.dumps(kernel_limits(**{**usual, **limits})))
    ended = run_inside(profile, prepared + code)
    assert ended.returncode != 0
    assert complaint in ended.stderr
