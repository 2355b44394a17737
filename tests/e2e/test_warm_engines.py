"""A warm engine between commands: real keepers, real sockets, real Spark."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.sandbox.resources import usage_of
from odf_node.engine_workspace import sweep_workspaces
from odf_node.home_folder import HomeFolder
from support.command_line import hear_ctrl_c
from support.nodes import Publisher, RealNode, make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

QUERY_TEXT = ("sql", "--engine", "spark", "-o", "csv", "-c", "SELECT count(*) AS n FROM cities")
ANSWER = '"n"\n8\n'
_SESSION = re.compile(rb"/staging/engines/([^/\0]+/[^/\0]+)/")
# Longer than a command takes to start on any machine.
IDLE = {"ODF_NODE_ENGINE_IDLE_S": "600"}


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publisher]:
    """A publisher whose engine one test may find warm from another: each begins with a command that makes it so."""
    made = make_publisher(tmp_path_factory.mktemp("warm"))
    publisher = replace(made, node=RealNode(made.node.home, is_apart=True))
    yield publisher
    end_keepers(publisher)


def end_keepers(publisher: Publisher) -> None:
    for keeper in keepers(publisher):
        os.kill(keeper, signal.SIGKILL)
    # A keeper that was killed holds the lock of its folder, and what it ran may write there, until all of it is gone.
    wait_until(lambda: not engines(publisher) and is_swept(publisher))


def is_swept(publisher: Publisher) -> bool:
    folder = publisher.node.home / "staging" / "engines"
    sweep_workspaces(folder)
    return not list(folder.glob("process-*"))


def keepers(publisher: Publisher) -> list[int]:
    return processes("odf_node.adapters.warm_engines", str(publisher.node.home))


def engines(publisher: Publisher) -> list[int]:
    return processes("bwrap", str(publisher.node.home))


def sessions(publisher: Publisher) -> set[str]:
    """The sessions whose engines run; an engine that has used much starts anew in its own."""
    found = set()
    for engine in engines(publisher):
        with suppress(OSError):
            found.update(_SESSION.findall(Path("/proc", str(engine), "cmdline").read_bytes()))
    return {each.decode() for each in found}


def find_listener(publisher: Publisher) -> int | None:
    """Tell keepers apart by what they listen at."""
    try:
        return (HomeFolder(publisher.node.home).engines / "spark.sock").stat().st_ino
    except FileNotFoundError:
        return None


def processes(*words: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(int(folder.name))
    return found


def wait_until(condition: object, limit_s: float = 240) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.2)  # a look goes through all processes of the machine


def assert_is_confined(engine: int) -> None:
    """Check, on the kernel's word, that every process inside of a sandbox has what SANDBOX-3 to SANDBOX-6 say."""
    inside = [each for each in usage_of(engine).process_ids if each != engine]
    assert len(inside) >= 3  # the first process of the sandbox, Python and Java
    for each in inside:
        folder = Path("/proc", str(each))
        status = (folder / "status").read_text()
        for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"):
            assert line in status
        for name in ("ipc", "mnt", "net", "pid", "user", "uts"):
            assert (folder / "ns" / name).readlink() != Path("/proc/self/ns", name).readlink()
    for each in inside[1:]:  # the first one is bubblewrap, which put the filter on
        folder = Path("/proc", str(each))
        assert "Seccomp:\t2" in (folder / "status").read_text()
        assert b"ODF_NODE" not in (folder / "environ").read_bytes()
        mounts = [line.split() for line in (folder / "mounts").read_text().splitlines()]
        writable = {place for _, place, _, options, *_ in mounts if options.split(",")[0] == "rw"}
        assert {place for place in writable if not place.startswith("/dev/")} == {"/tmp", "/scratch", "/exchange/out"}


def test_second_command_is_answered_by_the_engine_of_the_first_which_is_confined_as_any(publisher: Publisher) -> None:
    assert publisher.node.must(*QUERY_TEXT, environment=IDLE).out == ANSWER
    first = sessions(publisher)
    assert publisher.node.must(*QUERY_TEXT, environment=IDLE).out == ANSWER

    assert first
    assert sessions(publisher) == first
    assert len(keepers(publisher)) == 1
    assert_is_confined(next(each for each in engines(publisher) if usage_of(each).processes > 10))


def test_error_of_a_query_leaves_the_engine_warm(publisher: Publisher) -> None:
    publisher.node.must(*QUERY_TEXT, environment=IDLE)
    first = sessions(publisher)
    wrong = publisher.node.run("sql", "--engine", "spark", "-c", "SELECT nothing FROM cities", environment=IDLE)

    assert wrong.code != 0
    assert "nothing" in wrong.err
    assert sessions(publisher) == first
    assert publisher.node.must(*QUERY_TEXT, environment=IDLE).out == ANSWER


def test_command_that_is_interrupted_takes_its_request_along(publisher: Publisher) -> None:
    publisher.node.must(*QUERY_TEXT, environment=IDLE)
    endless = "SELECT count(*) FROM cities a, cities b, cities c, cities d, cities e, cities f, cities g, cities h, cities i, cities j, cities k, cities l"  # noqa: E501
    command = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "odf_node",
            "sql",
            "--engine",
            "spark",
            "-c",
            endless,
            "--home",
            str(publisher.node.home),
        ],
        preexec_fn=hear_ctrl_c,
        env=os.environ | IDLE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # The folder of a request's inputs is there while the engine works on it.
    wait_until(
        lambda: [*HomeFolder(publisher.node.home).engines.glob("process-*/*/in/*")] or command.poll() is not None
    )
    command.send_signal(signal.SIGINT)

    assert command.wait(timeout=240) == 130
    wait_until(lambda: not engines(publisher))
    assert publisher.node.must(*QUERY_TEXT, environment=IDLE).out == ANSWER


def test_two_commands_at_once_do_not_wait_for_each_other(publisher: Publisher) -> None:
    publisher.node.must(*QUERY_TEXT, environment=IDLE)
    commands = [
        subprocess.Popen(
            [sys.executable, "-m", "odf_node", *QUERY_TEXT, "--home", str(publisher.node.home)],
            env=os.environ | IDLE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]

    assert [command.communicate(timeout=400)[0] for command in commands] == [ANSWER, ANSWER]


def test_killed_keeper_is_replaced_and_one_ends_by_itself_when_nobody_comes(publisher: Publisher) -> None:
    publisher.node.must(*QUERY_TEXT, environment=IDLE)
    (keeper,) = keepers(publisher)
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not engines(publisher))  # the sandbox ends with whoever started it
    folder = HomeFolder(publisher.node.home).engines
    killed = set(folder.glob("process-*"))

    assert publisher.node.must(*QUERY_TEXT, environment={**IDLE, "ODF_NODE_ENGINE_IDLE_S": "1"}).out == ANSWER
    wait_until(lambda: not keepers(publisher) and not engines(publisher))
    assert set(folder.glob("process-*")) <= killed
    assert not (folder / "spark.sock").exists()


def test_daemon_takes_the_warm_engine_over_keeps_it_for_commands_and_ends_it(publisher: Publisher) -> None:
    publisher.node.must(*QUERY_TEXT, environment=IDLE)
    first, kept_by, listener = sessions(publisher), keepers(publisher), find_listener(publisher)
    assert first
    with publisher.node.serving():
        wait_until(lambda: find_listener(publisher) not in {None, listener})
        assert publisher.node.must(*QUERY_TEXT, environment=IDLE).out == ANSWER
        assert sessions(publisher) == first
        # Transforms are handed over as well: no other engine with Java is ever there.
        publisher.source.write_text("event_time,city,people\n2024-02-01T00:00:00Z,Oslo,720000\n", encoding="utf-8")
        words = ("pull", "cities", "large.cities", "--system-time", "2024-02-02T00:00:00Z", "-o", "json")
        source = IDLE | {"CITIES": publisher.source.as_uri()}
        with ThreadPoolExecutor(1) as beside:
            pulled = beside.submit(publisher.node.must, *words, environment=source)
            seen = sessions(publisher)
            while not pulled.done():
                seen.update(sessions(publisher))
                time.sleep(0.2)
        assert [report["upToDate"] for report in pulled.result().json()] == [False, False]
        assert {each for each in seen if "/arrow-" not in each} == first
        assert sessions(publisher) == first
        assert set(kept_by) <= set(keepers(publisher))
    assert not engines(publisher)
    assert not keepers(publisher)
