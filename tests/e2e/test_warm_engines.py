"""Engines of commands and of the daemon: real processes, real Spark (WARM-2, WARM-3, WARM-8 to WARM-10)."""

import re
import signal
import time
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import pytest

from odf_engines.sandbox.resources import usage_of
from odf_node.home_folder import HomeFolder
from support.daemons import Daemon, daemon
from support.nodes import FIRST_ROWS, Publisher, RealNode, make_publisher
from support.signed_in import SignedIn

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

COUNT = "SELECT 'rows ' || count(*) AS n FROM cities"
ENDLESS = f"SELECT count(*) AS n FROM {', '.join(f'cities AS c{number}' for number in range(24))}"
SETTINGS = '[access]\npages = "token"\n[shutdown]\ngrace_seconds = 1\n[[schedule]]\ndatasets = "%"\nevery = "1s"\n'
_SESSION = re.compile(rb"/staging/engines/([^/\0]+/[^/\0]+)/")


@dataclass(frozen=True)
class Engines:
    """What runs in sandboxes for one home."""

    home: Path

    def list_processes(self) -> list[int]:
        """The outermost process of each sandbox, and bubblewrap's second."""
        return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if self._is_engine(folder)]

    def _is_engine(self, folder: Path) -> bool:
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            return b"bwrap" in words and str(self.home).encode() in words
        return False

    def sessions(self, name: str) -> set[str]:
        """The sessions of an engine that run; one that has used much starts anew in its own."""
        found: set[bytes] = set()
        for each in self.list_processes():
            with suppress(OSError):
                found.update(_SESSION.findall(Path("/proc", str(each), "cmdline").read_bytes()))
        return {each.decode() for each in found if f"/{name}-".encode() in each}

    def folder(self, name: str) -> Path:
        """Where its one session works."""
        (session,) = self.sessions(name)
        return HomeFolder(self.home).engines / session


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return make_publisher(tmp_path)


@pytest.fixture
def served(publisher: Publisher) -> Iterator[Daemon]:
    home = publisher.node.home
    with daemon(home, settings=SETTINGS, environment={"CITIES": publisher.source.as_uri()}) as served:
        yield served
    assert Engines(home).list_processes() == []
    assert [*HomeFolder(home).engines.glob("process-*")] == []


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


def test_command_starts_one_engine_for_all_that_it_does_and_ends_it(publisher: Publisher) -> None:
    """WARM-8."""
    node, engines = RealNode(publisher.node.home, is_apart=True), Engines(publisher.node.home)
    publisher.source.write_text(f"event_time,city,people\n{FIRST_ROWS}", encoding="utf-8")
    node.must("add", str(write_second_derivative(publisher.source.parent)))
    words = ("pull", "cities", "large.cities", "small.cities", "-o", "json")
    with ThreadPoolExecutor(1) as beside:
        pulled = beside.submit(node.must, *words, environment={"CITIES": publisher.source.as_uri()})
        seen: set[str] = set()
        while not pulled.done():
            seen.update(engines.sessions("spark"))
            time.sleep(0.2)
    assert [report["upToDate"] for report in pulled.result().json()] == [False, False, False]
    assert len(seen) == 1
    assert engines.list_processes() == []
    assert [*HomeFolder(node.home).engines.iterdir()] == []


def write_second_derivative(folder: Path) -> Path:
    text = (
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: small.cities\n  kind: Derivative\n  metadata:\n"
        "    - kind: SetTransform\n      inputs: [{datasetRef: cities, alias: c}]\n      transform:\n"
        "        {kind: Sql, engine: spark, query: 'SELECT event_time, city FROM c WHERE people < 100000'}\n"
    )
    (folder / "small.yaml").write_text(text)
    return folder / "small.yaml"


def test_daemon_keeps_one_engine_for_its_operator_and_ends_it_while_it_works(
    publisher: Publisher, served: Daemon
) -> None:
    """WARM-2, WARM-3, WARM-8, WARM-10, PAGES-13."""
    node, engines = publisher.node, Engines(publisher.node.home)
    operator, other = SignedIn.by(node, served.url, "--inspect"), SignedIn.by(node, served.url)
    assert "rows 8" in operator.ask(COUNT, "spark")
    first = engines.sessions("spark")
    assert len(first) == 1
    assert_is_confined(next(each for each in engines.list_processes() if usage_of(each).processes > 10))

    # Steps of schedules go there as well.
    publisher.source.write_text("event_time,city,people\n2024-02-01T00:00:00Z,Oslo,720000\n", encoding="utf-8")
    wait_until(lambda: [each for each in served.log("scheduled-pull") if each["dataset"] == "large.cities"][1:])
    assert {each["result"] for each in served.log("scheduled-pull")} <= {"updated", "up-to-date"}
    wait_until(
        lambda: [each for each in served.log("scheduled-pull") if each["dataset"] == "large.cities" and each["blocks"]]
    )
    assert engines.sessions("spark") == first

    # Who has no 'inspect' is answered by an engine that nothing else uses: each request of a session leaves a folder.
    assert "rows" in operator.ask(COUNT, "datafusion")
    asked = [*(engines.folder("datafusion") / "done").iterdir()]
    assert "rows" in other.ask(COUNT, "datafusion")
    assert [*(engines.folder("datafusion") / "done").iterdir()] == asked

    with ThreadPoolExecutor(1) as beside:
        beside.submit(ask_for_ever, operator)
        wait_until(lambda: [*(engines.folder("spark") / "in").iterdir()])
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(60) == 0
    assert engines.list_processes() == []


def ask_for_ever(browser: SignedIn) -> None:
    with suppress(urllib.error.URLError, HTTPException, OSError):
        browser.ask(ENDLESS, "spark")
