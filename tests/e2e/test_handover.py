"""Commands that the daemon of their home runs: the same to those who typed them (HAND-1 to HAND-8)."""

import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import odf_node
from odf_node.handover.request import SWITCH_VARIABLE
from support.command_line import are_gone, descendants, environment_of, hear_ctrl_c, start_command, wait_until
from support.daemons import WAIT_S, Daemon, daemon
from support.offers import root_chain

BY_ITSELF = {SWITCH_VARIABLE: "false"}
ENDED_TEXT = "odf-node pull: the daemon that ran this command has ended; nothing was left half-done, run it again\n"


@dataclass(frozen=True)
class Lending:
    """A daemon that takes commands, and its home."""

    home: Path
    daemon: Daemon
    takes_one: bool = False

    def run(
        self, *words: str | Path, before: str = "", beside: bool = False, **environment: str
    ) -> tuple[int, str, str]:
        """Run a command in a process, in the home's folder, after shell words ``before`` it.

        It begins when the ones before have ended, or ``beside`` one that runs.
        """
        if not beside:
            self.settle()
        program = [sys.executable, "-m", "odf_node", *map(str, words)]
        ran = subprocess.run(
            ["sh", "-c", f'{before} exec "$@"', "sh", *program] if before else program,
            env=environment_of(self.home, **environment),
            cwd=self.home.parent,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        return ran.returncode, ran.stdout, ran.stderr

    def count(self) -> int:
        """Say how many commands were handed over so far; ``expect`` those that were before."""
        return len(self.daemon.log("command-began"))

    def expect(self, count: int) -> None:
        """Wait until the log tells of so many commands, and no more."""
        assert len(self.daemon.wait_for("command-began", count)) == count

    def settle(self) -> None:
        """Wait until another command can be taken: a client knows of the end before the fork server does."""
        if self.takes_one:
            self.daemon.wait_for("command", self.count())

    def prepare(self) -> "Lending":
        """Have the fork server started."""
        before = len(self.daemon.log("commands-ready"))
        self.run("list")
        self.daemon.wait_for("commands-ready", before + 1)
        return self

    @property
    def server_id(self) -> int:
        return int(self.daemon.log("commands-ready")[-1]["pid"])


@contextmanager
def lending(folder: Path, settings: str = "") -> Iterator[Lending]:
    home = folder / "home"
    with daemon(home, settings=settings) as running:
        yield Lending(home, running, takes_one="at_once = 1" in settings).prepare()


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lending]:
    """A daemon that takes one command at a time, with a layout of a dataset beside its home."""
    folder = tmp_path_factory.mktemp("handover")
    root_chain(folder, slices=1).write_layout(folder / "layout" / "cities")
    with lending(folder, "[commands]\nat_once = 1\n") as ready:
        yield ready


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """Takes connections and never answers: who pulls from there waits."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(WAIT_S)
        yield listener


@contextmanager
def waiting_pull(on: Lending, server: socket.socket) -> Iterator["subprocess.Popen[str]"]:
    """Run a pull that was handed over and waits for an answer."""
    on.settle()
    before = on.count()
    started = start_command(on.home, "pull", f"http://127.0.0.1:{server.getsockname()[1]}/cities")
    connection, _ = server.accept()
    try:
        with closing(connection):
            on.expect(before + 1)
            yield started
    finally:
        with suppress(ProcessLookupError):
            started.kill()
        started.communicate()


def worker_id(of: Lending) -> int:
    return int(of.daemon.log("command-began")[-1]["pid"])


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("list", "-o", "json"), id="a-success"),
        pytest.param(("pull", "nothing.here"), id="a-refusal"),
        pytest.param(("pull", "--polcy", "unsigned", "x"), id="a-usage-error"),
        pytest.param(("pull", "--help"), id="help-as-wide-as-the-terminal"),
        pytest.param(("-q", "list", "--system-time", "noon"), id="an-option-before-the-command"),
    ],
)
def test_handed_over_command_says_and_returns_what_it_does_by_itself(lent: Lending, words: tuple[str, ...]) -> None:
    before = lent.count()
    handed_over = lent.run(*words, COLUMNS="61")
    lent.expect(before + 1)
    assert handed_over == lent.run(*words, COLUMNS="61", **BY_ITSELF)
    assert lent.count() == before + 1


def test_handed_over_pull_brings_what_a_relative_path_names(lent: Lending, tmp_path: Path) -> None:
    words = ("pull", "./layout/cities", "--policy", "unsigned")
    before = lent.count()
    handed_over = lent.run(*words)
    lent.expect(before + 1)
    assert handed_over == lent.run(*words, "--home", tmp_path / "other")
    assert handed_over[0] == 0
    assert lent.run("list", "-o", "json", **BY_ITSELF)[1].count('"cities"') == 1


def test_limits_of_the_shell_hold_for_what_was_handed_over(lent: Lending) -> None:
    before = lent.count()
    words = ("pull", "./layout/cities", "--as", "limited", "--policy", "unsigned")
    # Which write fails first, and so what is said of it, depends on what the daemon has open just now.
    assert lent.run(*words, before="ulimit -f 0;")[0] != 0
    lent.expect(before + 1)
    assert lent.run(*words)[0] == 0
    lent.expect(before + 2)


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        pytest.param("ulimit -n 64; exec 2>&-;", {}, id="without-a-stream"),
        pytest.param("", {"PYTHONHASHSEED": "1"}, id="another-variable-of-the-interpreter"),
        pytest.param("", {"ODF_NODE_COMMANDS_HAND_OVER": "no"}, id="switched-off"),
    ],
)
def test_command_that_would_differ_works_by_itself(lent: Lending, before: str, environment: dict[str, str]) -> None:
    count = lent.count()
    code, out, _ = lent.run("list", "-o", "json", before=before, **environment)
    assert (code, out[:1]) == (0, "[")
    # The log tells them in order: of one more, none was told between.
    lent.run("list")
    lent.expect(count + 1)


def test_folder_that_others_can_write_is_not_trusted(lent: Lending) -> None:
    folder, before = lent.home / "staging" / "commands", lent.count()
    folder.chmod(0o777)
    try:
        assert lent.run("list")[0] == 0
    finally:
        folder.chmod(0o700)
    lent.run("list")
    lent.expect(before + 1)


def test_command_beyond_the_bound_works_by_itself(lent: Lending, silent_server: socket.socket) -> None:
    with waiting_pull(lent, silent_server):
        before = lent.count()
        assert lent.run("list", beside=True)[0] == 0
        assert lent.count() == before
    assert "at_once" in lent.daemon.wait_for("command-left")[-1]["text"]


def test_ctrl_c_stops_a_handed_over_command_that_shows_progress(lent: Lending, silent_server: socket.socket) -> None:
    lent.settle()
    before, place = lent.count(), silent_server.getsockname()[1]
    master, terminal = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "odf_node", "pull", f"http://127.0.0.1:{place}/cities"],
        env=environment_of(lent.home, TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        preexec_fn=hear_ctrl_c,
    )
    os.close(terminal)
    connection, _ = silent_server.accept()
    started.send_signal(signal.SIGINT)
    assert started.wait(WAIT_S) == 130
    connection.close()
    shown = b""
    with suppress(OSError):
        while part := os.read(master, 1024):
            shown += part
    os.close(master)
    lent.expect(before + 1)
    assert b"\rhttp://127.0.0.1" in shown
    assert shown.endswith(b"odf-node pull: stopped; nothing was left half-done\r\n")
    assert lent.run("list")[0] == 0
    lent.expect(before + 2)


def test_killed_client_takes_its_worker_with_it(lent: Lending, silent_server: socket.socket) -> None:
    with waiting_pull(lent, silent_server) as client:
        worker = worker_id(lent)
        readers = descendants(worker)
        assert len(readers) == min(2, len(os.sched_getaffinity(0)))
        client.kill()
        wait_until(lambda: are_gone({worker, *readers}), "the worker ends, and its readers", WAIT_S)
    lent.daemon.wait_for("command", lent.count())
    assert lent.daemon.log("command")[-1]["code"] == 143


def test_killed_fork_server_and_killed_daemon_are_told_in_one_line(
    tmp_path: Path, silent_server: socket.socket
) -> None:
    with lending(tmp_path) as first:
        with waiting_pull(first, silent_server) as client:
            worker = worker_id(first)
            os.kill(first.server_id, signal.SIGKILL)
            assert client.communicate(timeout=WAIT_S) == ("", ENDED_TEXT)
            assert client.returncode == 5
            wait_until(lambda: are_gone({worker}), "the worker ends", WAIT_S)
        first.daemon.wait_for("commands-ended")
        assert first.run("list")[0] == 0
        first.daemon.process.kill()
        first.daemon.process.wait()
    assert (first.home / "staging" / "commands" / "commands.sock").exists()
    assert first.run("list")[0] == 0
    # What the dead one left is replaced, and this one is killed with everything it has started.
    with lending(tmp_path) as second:
        with waiting_pull(second, silent_server) as client:
            family = descendants(second.daemon.process.pid)
            assert worker_id(second) in family
            second.daemon.process.kill()
            assert client.communicate(timeout=WAIT_S) == ("", ENDED_TEXT)
            assert client.returncode == 5
            wait_until(lambda: are_gone(family), "everything ends", WAIT_S)
        second.daemon.process.wait()


def test_daemon_that_is_stopped_ends_its_commands_and_leaves_no_socket(
    tmp_path: Path, silent_server: socket.socket
) -> None:
    with (
        lending(tmp_path, "[shutdown]\ngrace_seconds = 0\n") as ready,
        waiting_pull(ready, silent_server) as client,
    ):
        os.kill(ready.server_id, signal.SIGTERM)  # as supervisors do, which must not come before the daemon's own word
        ready.daemon.process.terminate()
        assert client.communicate(timeout=WAIT_S) == ("", ENDED_TEXT)
        assert client.returncode == 5
        assert ready.daemon.process.wait(WAIT_S) == 0
    assert sorted(path.name for path in (ready.home / "staging" / "commands").iterdir()) == ["lock"]


def test_client_of_a_killed_worker_ends_by_the_same_signal(lent: Lending, silent_server: socket.socket) -> None:
    with waiting_pull(lent, silent_server) as client:
        readers = descendants(worker_id(lent))
        assert readers
        os.kill(worker_id(lent), signal.SIGKILL)
        client.communicate(timeout=WAIT_S)
        assert client.returncode == -signal.SIGKILL
        wait_until(lambda: are_gone(readers), "its readers end", WAIT_S)


def test_changed_program_is_not_run_by_a_process_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "code"
    for package in ("node/odf_node", "engines/odf_engines", "protocol/odf_protocol"):
        source = Path(odf_node.__file__).parents[2] / package
        shutil.copytree(source, code / source.name)
    monkeypatch.setenv("PYTHONPATH", str(code))
    with lending(tmp_path) as ready:
        assert ready.run("list")[0] == 0
        ready.expect(1)
        os.utime(code / "odf_node" / "home.py", (1, 1))
        assert (ready.run("list")[0], ready.count()) == (0, 1)
        assert "changed" in ready.daemon.wait_for("command-left")[0]["text"]
