"""Clauses WARM-6, WARM-7: a keeper whose place another one takes, or that is stopped; no engine starts here."""

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odf_engines.errors import EngineFailureError
from odf_node.adapters import kept_session, warm_engines
from odf_node.adapters.keeper_place import KeeperPlace
from odf_node.adapters.kept_session import TakenSession, find_warm_session
from odf_node.adapters.warm_engines import Keeper
from odf_node.engine_workspace import EngineWorkspace
from odf_node.program_files import build_of_program

WAIT_S = 240  # guess: a machine that is slow and busy

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def place(tmp_path: Path) -> KeeperPlace:
    return KeeperPlace(tmp_path / "engines", "spark")


@pytest.fixture
def process(place: KeeperPlace) -> "Iterator[subprocess.Popen[bytes]]":
    """A keeper as a command starts it."""
    place.get_or_create_key()
    words = [sys.executable, "-m", "odf_node.adapters.warm_engines", str(place.folder), "spark", build_of_program()]
    with subprocess.Popen([*words, "600"]) as process:
        wait_until(lambda: listens(place))
        yield process
        process.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def listens(place: KeeperPlace) -> bool:
    """Whether a keeper listens: the mode of its socket is the last that it sets."""
    try:
        return place.socket.stat().st_mode & 0o777 == 0o600
    except FileNotFoundError:
        return False


@contextmanager
def taking(place: KeeperPlace) -> Iterator[tuple[Keeper, list[str]]]:
    """Let another keeper take the place, as the daemon's does; gives it and what it says."""
    stated: list[str] = []
    keeper = Keeper(
        place,
        EngineWorkspace(place.folder),
        build_of_program(),
        math.inf,
        ends_when_idle=False,
        on_progress=stated.append,
    )
    thread = threading.Thread(target=keeper.run, daemon=True)
    thread.start()
    try:
        yield keeper, stated
    finally:
        keeper.end()
        thread.join(WAIT_S)
    assert not thread.is_alive()


def find_taken(keeper: Keeper) -> TakenSession | None:
    return keeper._session if isinstance(keeper._session, TakenSession) else None


def test_taken_keeper_finishes_with_its_command_and_ends_with_who_took_it(
    place: KeeperPlace, process: "subprocess.Popen[bytes]"
) -> None:
    command = find_warm_session(place, build_of_program(), 600)
    assert command is not None
    with taking(place) as (keeper, stated):
        assert find_taken(keeper) is None  # while the command has its turn
        command.close()
        wait_until(lambda: find_taken(keeper) is not None)
        assert process.poll() is None
    assert process.poll() is not None
    assert not stated


def test_taken_keeper_that_is_killed_is_noticed(place: KeeperPlace, process: "subprocess.Popen[bytes]") -> None:
    with taking(place) as (keeper, _):
        wait_until(lambda: find_taken(keeper) is not None)
        taken = find_taken(keeper)
        assert taken is not None
        assert not taken.has_ended()
        process.kill()
        wait_until(taken.has_ended)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop it as a shell does, and return when it is."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def test_taken_keeper_that_is_stopped_is_killed_at_the_end(
    place: KeeperPlace, process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    with taking(place) as (keeper, stated):
        wait_until(lambda: find_taken(keeper) is not None)
        stop(process)
        monkeypatch.setattr(kept_session, "END_S", 0.1)
    assert process.wait() == -signal.SIGKILL
    assert stated == [
        f"process {process.pid}, which kept an engine warm, did not end within 0.1 s and was killed",
    ]


def test_keeper_that_is_stopped_is_passed_over_and_ends_when_it_goes_on(
    place: KeeperPlace, process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(process)
    its_socket = place.socket.stat().st_ctime_ns
    monkeypatch.setattr(kept_session, "ANSWER_S", 0.1)
    with taking(place) as (keeper, stated):
        wait_until(lambda: listens(place) and place.socket.stat().st_ctime_ns != its_socket)
        monkeypatch.undo()
        assert find_taken(keeper) is None
        command = find_warm_session(place, build_of_program(), 600)
        assert command is not None
        command.close()
        process.send_signal(signal.SIGCONT)
        assert process.wait() == 0
        assert place.socket.exists()
    assert not stated


def test_command_that_holds_the_engine_and_asks_nothing_keeps_nobody_from_ending(place: KeeperPlace) -> None:
    with taking(place):
        wait_until(lambda: listens(place))
        command = find_warm_session(place, build_of_program(), 600)
    assert command is not None
    with pytest.raises(EngineFailureError, match="has ended"):
        command.start()
    command.close()


def test_command_that_is_stopped_in_its_greeting_keeps_nobody_from_ending(place: KeeperPlace) -> None:
    with socket.socket(socket.AF_UNIX) as line, taking(place) as (keeper, _):
        wait_until(lambda: listens(place))
        with place.address() as address:
            line.connect(address)
        wait_until(lambda: keeper._line is not None)


def test_keeper_that_is_told_to_end_while_it_waits_leaves_the_other_in_its_place(
    place: KeeperPlace, process: "subprocess.Popen[bytes]"
) -> None:
    command = find_warm_session(place, build_of_program(), 600)
    assert command is not None
    with taking(place):
        pass
    command.close()
    again = find_warm_session(place, build_of_program(), 600)
    assert again is not None
    again.close()
    assert process.poll() is None


def test_keeper_that_nobody_asks_anything_ends_when_it_is_told_to(
    place: KeeperPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_engines, "WATCH_S", 10 * WAIT_S)
    keeper = Keeper(place, EngineWorkspace(place.folder), build_of_program(), math.inf, ends_when_idle=False)
    thread = threading.Thread(target=keeper.run, daemon=True)
    thread.start()
    wait_until(lambda: listens(place))
    keeper.end()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    keeper.end()  # again, as who ends everything may
