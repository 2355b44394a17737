"""Clauses SANDBOX-7 to SANDBOX-10: using the machine up, in the open and hidden, and the limit that ends each attempt.

The control is the same code under wider limits, where it runs to its end: so it is the limit that stopped it.
"""

import json
import math

import pytest

from odf_engines.confined.process import SandboxedProcess
from odf_engines.confined.program import ConfinedProgram
from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.sandbox.disk import remove_tree
from odf_engines.sandbox.resources import kernel_limits, usage_of
from support.limit_escapes import ATTEMPTS, FIXED, MIB, PRELUDE
from support.sandboxes import PYTHON, receive_line, small_profile

WALL_S = 240.0
ROOMY = {"memory_bytes": 4096 * MIB, "processes": 2000, "output_bytes": 4096 * MIB}

PARAMETERS = [pytest.param(attempt, id=name) for name, attempt in ATTEMPTS.items()]


@pytest.fixture
def start(tmp_path):
    """Start code in a watched sandbox with the kernel's limits; every one is ended after the test."""
    started = []
    writable = tmp_path / "out"
    writable.mkdir()
    profile = small_profile(tmp_path, writable=writable, memory_bytes=16 * MIB)

    def start_process(attempt, duration_s, **limits):
        bounds = Limits(**{"memory_bytes": 512 * MIB, **limits})
        taken = kernel_limits(
            memory_bytes=bounds.memory_bytes, cpu_s=math.ceil(bounds.cpu_s), file_bytes=bounds.output_bytes,
            processes=bounds.processes,
        )  # fmt: skip
        code = PRELUDE.replace("LIMITS", json.dumps(taken)) + attempt.code
        code = code.replace("DURATION", str(duration_s))
        process = SandboxedProcess(profile, [*PYTHON, code + "\nprint('done')"], bounds, writable=[writable])
        started.append(process)
        return process

    yield start_process
    for process in started:
        process.kill()
    remove_tree(writable)


@pytest.mark.parametrize("attempt", PARAMETERS)
def test_attempt_is_ended_by_its_limit_and_leaves_nothing_behind(start, attempt):
    process = start(attempt, 600, **attempt.limits)
    with pytest.raises((LimitExceededError, EngineFailureError)) as caught:
        ConfinedProgram(process).wait_until_ready(attempt.limits.get("wall_s", WALL_S))
    if isinstance(caught.value, LimitExceededError):
        assert caught.value.limit == attempt.stopped_by
    else:
        assert attempt.stopped_by in str(caught.value), caught.value.log
    process.kill()
    assert usage_of(process.process_id).processes == 0


@pytest.mark.parametrize(
    "attempt", [pytest.param(a, id=n) for n, a in ATTEMPTS.items() if n not in FIXED and not a.is_endless]
)
def test_attempt_runs_to_its_end_under_wider_limits(start, attempt):
    process = start(attempt, 0.4, **ROOMY)
    while (line := receive_line(process, WALL_S)) != b"done":
        assert line == b""
    process.close()


@pytest.mark.parametrize("name", sorted(FIXED))
def test_attempt_runs_to_its_end_where_nobody_watches(start, name, monkeypatch):
    monkeypatch.setattr(SandboxedProcess, "_find_crossed", lambda self: None)
    process = start(ATTEMPTS[name], 0.4, **ROOMY)
    while (line := receive_line(process, WALL_S)) != b"done":
        assert line == b""
    process.close()
