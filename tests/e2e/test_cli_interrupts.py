"""Ctrl-C and SIGTERM in the middle: engines end, nothing is half-done, the exit code is the signal's."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import (
    EXAMPLE,
    FIRST_VERSION,
    SECOND_VERSION,
    are_gone,
    descendants,
    environment_of,
    hear_ctrl_c,
    list_kept,
    run_command,
    start_command,
    wait_until,
    write_source,
)

SOON_S = 240.0  # less than any limit of an engine, more than a slow and busy machine needs to end one
NUMBERS = "(SELECT explode(sequence(1, 3000000)) AS n)"
LONG_QUERY = f"SELECT count(*) FROM {NUMBERS} AS a, {NUMBERS} AS b WHERE a.n <> b.n"
EXIT_CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node whose root has data and whose derivative has not read them."""
    folder = tmp_path_factory.mktemp("template")
    source = write_source(folder / "source.csv.gz", FIRST_VERSION)
    for words in (
        ["add", EXAMPLE / "countries.daily.yaml", EXAMPLE / "countries.severity.yaml"],
        ["pull", "countries.daily"],
    ):
        done = run_command(folder / "home", *words, environment=source, has_engine=True)
        assert done.returncode == 0, done.stderr
    return folder / "home"


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "home"))


def stopped(process: subprocess.Popen[str], number: signal.Signals, code: int) -> None:
    """Signal the process: it ends soon, with one line, and with everything that it started."""
    started = descendants(process.pid)
    process.send_signal(number)
    out, err = end(process)
    assert process.returncode == code, err
    assert out == ""
    assert err.endswith("stopped; nothing was left half-done\n")
    assert len(err.splitlines()) == 1, err
    wait_until(lambda: are_gone(started), "the end of every process that was started", SOON_S)


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for the end of a process that was told to end, and make sure of it."""
    try:
        return process.communicate(timeout=SOON_S)
    finally:
        process.kill()


def leftovers(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "staging").iterdir() if path.name not in {"downloads", "engines"})


def sweep(home: Path) -> None:
    """Let the next command that writes remove what the stopped one left."""
    assert run_command(home, "add", EXAMPLE / "countries.daily.yaml").returncode == 2
    assert leftovers(home) == []
    assert list((home / "staging" / "engines").glob("process-*")) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("dataset", "number", "code"),
    [("countries.daily", *EXIT_CODES[0]), ("countries.severity", *EXIT_CODES[1])],
    ids=["ingest-SIGINT", "transform-SIGTERM"],
)
def test_pull_that_is_stopped_while_the_engine_starts_changes_nothing(
    home: Path, tmp_path: Path, dataset: str, number: signal.Signals, code: int
) -> None:
    before = list_kept(home)
    source = write_source(tmp_path / "source.csv.gz", SECOND_VERSION)
    process = start_command(home, "pull", dataset, environment=source)
    wait_until(lambda: len(descendants(process.pid)) >= 3, "the engine's first processes")
    stopped(process, number, code)
    assert list_kept(home) == before
    sweep(home)


@pytest.mark.spark
def test_ingest_that_is_stopped_while_an_engine_works_changes_nothing(home: Path, tmp_path: Path) -> None:
    before = list_kept(home)
    source = write_source(tmp_path / "source.csv.gz", SECOND_VERSION)
    process = start_command(home, "pull", "countries.daily", environment=source)
    # The folder of a request is made when the engine is ready for it.
    wait_until(lambda: [*(home / "staging" / "engines").glob("*/*/in/1")] or process.poll() is not None, "the request")
    stopped(process, signal.SIGINT, 130)
    assert list_kept(home) == before
    sweep(home)


@pytest.mark.spark
def test_query_that_is_stopped_changes_nothing_and_ends_its_engine(home: Path) -> None:
    before = list_kept(home)
    process = start_command(home, "sql", "--engine", "spark", "-c", LONG_QUERY)
    wait_until(lambda: [*(home / "staging" / "engines").glob("*/*/in/1")] or process.poll() is not None, "the request")
    stopped(process, signal.SIGINT, 130)
    assert list_kept(home) == before
    sweep(home)


@pytest.mark.parametrize(("number", "code"), EXIT_CODES, ids=["SIGINT", "SIGTERM"])
def test_pull_from_a_peer_that_is_silent_is_stopped_at_once(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = start_command(tmp_path / "home", "pull", f"http://127.0.0.1:{silent.getsockname()[1]}/x")
        connection, _ = silent.accept()
        with connection:
            stopped(process, number, code)
    assert list_kept(tmp_path / "home") == {"datasets": (), "audit": [], "objects": set()}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_serving_ends_in_order_and_takes_its_ready_file_away(
    home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    ready = tmp_path / "ready"
    process = start_command(home, "serve", "--http-port", "0", "--ready-file", ready)
    wait_until(ready.exists, "the ready file")
    started = descendants(process.pid)
    process.send_signal(number)
    _, err = end(process)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert not ready.exists()
    wait_until(lambda: are_gone(started), "the end of every process that was started", SOON_S)


def test_question_that_is_answered_with_ctrl_c_deletes_nothing(home: Path) -> None:
    before = list_kept(home)
    terminal, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "odf_node", "delete", "countries.severity"],
        env=environment_of(home), stdin=theirs, stdout=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    assert process.stdout is not None
    query_text = ""
    while "[y/N]" not in query_text:
        query_text += process.stdout.read(1)

    def ends_when_reported() -> bool:
        # A signal between the question and the reading of its answer is noticed with the next one only, which is the
        # second and ends the process on the spot.
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        return process.returncode is not None

    wait_until(ends_when_reported, "the end of the question", SOON_S)
    process.communicate()
    os.close(terminal)
    os.close(theirs)
    assert process.returncode in {130, -signal.SIGINT}
    assert list_kept(home) == before
