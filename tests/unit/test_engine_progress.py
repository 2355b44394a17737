"""Clauses ADDED-7 and ENGINE-29: what a guest reports of its progress is bounded, and is never an answer."""

import pytest

from odf_engines.confined.messages import pack_message
from odf_engines.confined.process import SandboxedProcess
from odf_engines.confined.program import ConfinedProgram
from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.progress import report_count, telling
from support.sandboxes import PYTHON, small_profile

ANSWER = pack_message({"result": 7})


@pytest.fixture
def start(tmp_path):
    """Start a program that answers whatever it is asked with the same bytes, over and over if so said."""
    started = []

    def start_program(stated, *, repeated=1):
        code = (
            f"import sys, time\nsys.stdin.buffer.read(1)\n"
            f"for _ in range({repeated}): sys.stdout.buffer.write({stated!r})\n"
            "sys.stdout.flush(); time.sleep(600)"
        )
        process = SandboxedProcess(small_profile(tmp_path), [*PYTHON, code], Limits())
        started.append(process)
        return ConfinedProgram(process)

    yield start_program
    for each in started:
        each.kill()


def progress(count):
    return pack_message({"progress": count})


def test_progress_is_reported_until_the_answer(start):
    heard = []
    program = start(progress(1) + progress(9) + ANSWER)
    assert program.ask("any", {}, wall_s=60.0, on_progress=heard.append).header == {"result": 7}
    assert heard == [1, 9]
    assert program.process.is_running


def test_guest_that_reports_without_end_is_ended(start):
    heard = []
    program = start(progress(1), repeated=1_000_000)
    with pytest.raises(EngineFailureError, match="times that it works, and nothing else"):
        program.ask("any", {}, wall_s=600.0, on_progress=heard.append)
    assert len(heard) < 1000
    assert not program.process.is_running


def test_progress_takes_of_the_time_of_the_request(start):
    with pytest.raises(LimitExceededError) as caught:
        start(progress(1)).ask("any", {}, wall_s=0.5)
    assert (caught.value.limit, caught.value.allowed) == ("wall_s", 0.5)


@pytest.mark.parametrize("count", [-1, 10**400, "\x1b[31m", True, None, 1.5])
def test_progress_that_is_none_ends_the_guest(start, count):
    program = start(pack_message({"progress": count}) + ANSWER)
    with pytest.raises(EngineFailureError, match="neither result nor error"):
        program.ask("any", {}, wall_s=60.0)
    assert not program.process.is_running


def test_guest_tells_what_it_read_once_a_second_and_nothing_outside_of_a_request(monkeypatch):
    stated, now_s = [], [0.0]
    monkeypatch.setattr("odf_engines.progress.time.monotonic", lambda: now_s[0])
    report_count(1)
    with telling(stated.append):
        for count in range(1, 31):
            now_s[0] += 0.1
            report_count(count)
    report_count(99)
    assert len(stated) in {2, 3}
    assert stated == sorted(stated)
