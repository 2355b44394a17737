"""What takes rows in, killed with SIGKILL: a daemon that has acknowledged some, and commands that fix and correct.

Nothing that was acknowledged is lost, nothing is there twice, and the same command comes to its end.

Source: clauses FEED-1 and FEED-2 in ``spec/pushed-rows.md``, QUAR-3 in ``spec/quarantine.md``, HOME-10 and HOME-11 in
``spec/home.md``.
"""

import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from support.command_line import are_gone
from support.daemons import Daemon, daemon, wait_until
from support.nodes import RealNode

pytestmark = pytest.mark.timeout(900)

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: readings
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [event_time TIMESTAMP, n BIGINT]}
      merge: {kind: Append}
"""
GOOD = '{{"event_time": "2024-01-01T00:00:00Z", "n": {}}}\n'
BAD = '{{"event_time": "2024-01-01T00:00:00Z", "n": "{} or so"}}\n'
SENDERS = 3
KILLED_AT = (2, 5)
"""Acknowledged bodies, behind which the daemon is killed while others are on their way."""


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    node = RealNode(tmp_path / "home")
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    node.must("add", str(tmp_path / "manifest.yaml"))
    return node


class Senders:
    """Send numbers, each in a body of its own with a bad row beside it, until nobody answers."""

    def __init__(self, url: str, token: str, first: int) -> None:
        self.acknowledged: dict[int, str] = {}
        self.begun: set[int] = set()
        self._url, self._token, self._next, self._lock = URL(url), token, first, threading.Lock()

    def send(self, number: int) -> dict[str, Any]:
        body = (GOOD + BAD).format(number, number)
        fields = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {self._token}"}
        fields["Idempotency-Key"] = f"number {number}"
        with closing(http.client.HTTPConnection(str(self._url.host), self._url.port or 0, timeout=240)) as connection:
            connection.request("POST", "/readings/ingest", body=body, headers=fields)
            answer = connection.getresponse()
            found = answer.read()
            assert answer.status == 200, found
            return dict(json.loads(found))

    def run(self) -> None:
        while True:
            with self._lock:
                number = self._next
                self._next += 1
                self.begun.add(number)
            try:
                self.acknowledged[number] = self.send(number)["head"]
            except (OSError, http.client.HTTPException):
                return


def kill_while_sending(running: Daemon, senders: Senders, count: int) -> None:
    threads = [threading.Thread(target=senders.run) for _ in range(SENDERS)]
    for each in threads:
        each.start()
    wait_until(lambda: len(senders.acknowledged) >= count or None, running.log_file.read_text)
    running.process.kill()
    running.process.wait()
    for each in threads:
        each.join()


def test_rows_that_a_killed_daemon_acknowledged_are_there_once_feed_1(node: RealNode) -> None:
    """FEED-1, FEED-2: what was answered is in the chain, and what was not is sent again under its key."""
    token = node.must("token", "create", "sender", "--dataset", "readings", "-o", "json").json()["token"]
    acknowledged: dict[int, str] = {}
    begun: set[int] = set()
    for count in KILLED_AT:
        with daemon(node.home) as running:
            senders = Senders(running.url, token, first=len(begun))
            kill_while_sending(running, senders, count)
        acknowledged |= senders.acknowledged
        begun |= senders.begun
    assert len(begun) > len(acknowledged) >= sum(KILLED_AT)
    with daemon(node.home) as running:
        senders = Senders(running.url, token, first=len(begun))
        for number in sorted(begun):
            answer = senders.send(number)
            if number in acknowledged:
                assert (answer["repeated"], answer["head"]) == (True, acknowledged[number])
    rows = node.must("tail", "readings", "-n", "1000", "-o", "json").json()
    assert sorted(row["n"] for row in rows) == sorted(begun)
    bad = node.must("quarantine", "show", "readings", "-o", "json").json()
    assert sorted(row["columns"]["n"] for row in bad) == sorted(f"{number} or so" for number in begun)
    assert_sound(node)


def assert_sound(node: RealNode) -> None:
    """All that looks for damage finds none, and after the next sweep nothing lies about that nobody names."""
    for words in (("verify", "%"), ("scrub",), ("gc",)):
        node.must(*words)
    assert [each for each in node.must("status", "-o", "json").json() if each["condition"] == "unsound"] == []
    home = HomeFolder(node.home)
    with closing(MetadataStore(home)) as store:
        assert set(ObjectFolder(home).iter_hashes()) == set(store.list_referenced_objects())
    assert [path.name for path in home.staging.iterdir() if path not in {home.downloads, home.engines}] == []
    assert list(home.engines.glob("process-*")) == []


def journal_grows(home: HomeFolder) -> Callable[[], bool]:
    """Something was written, and perhaps committed."""
    return lambda: any(path.stat().st_size > 0 for path in home.path.glob("*-wal"))


def objects_appear(home: HomeFolder) -> Callable[[], bool]:
    """A file is in place that nothing names yet."""
    before = sum(1 for _ in home.objects.glob("*/*"))
    return lambda: sum(1 for _ in home.objects.glob("*/*")) > before


FIX = ("quarantine", "fix", "readings", "1.1", "--set", "n='8'")
RESEND = ("quarantine", "resend", "readings")
CORRECT = ("correct", "readings", "--where", "n = 7", "--set", "n=9", "--reason", "a letter", "--yes")
COMMANDS = {
    "fix": ((), FIX, journal_grows, [(0, 7)]),
    "resend": ((FIX,), RESEND, objects_appear, [(0, 7), (0, 8)]),
    "correct": ((), CORRECT, objects_appear, [(0, 7), (2, 7), (3, 9)]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_about_rows_that_is_killed_is_whole_or_nothing_and_works_again_quar_3(
    node: RealNode, tmp_path: Path, name: str
) -> None:
    """QUAR-3, HOME-10, HOME-11: once alone, and once beside another that does the same."""
    before, words, find_sign, wanted = COMMANDS[name]
    (tmp_path / "rows.ndjson").write_text(GOOD.format(7) + BAD.format(8))
    node.must("ingest", "readings", str(tmp_path / "rows.ndjson"))
    for each in before:
        node.must(*each)
    old = operations(node)
    for at_once in (1, 2):
        killed = RealNode(tmp_path / f"killed-{at_once}")
        shutil.copytree(node.home, killed.home, ignore=shutil.ignore_patterns("engines"))
        kill_at(killed, words, find_sign(HomeFolder(killed.home)), at_once)
        found = operations(killed)
        assert found in (old, wanted)
        ended = killed.run(*words)
        assert ended.code == 0 or found == wanted, ended.err
        assert operations(killed) == wanted
        assert_sound(killed)
    assert operations(node) == old


def operations(node: RealNode) -> list[tuple[int, int]]:
    return [(row["op"], row["n"]) for row in node.must("tail", "readings", "-n", "1000", "-o", "json").json()]


def kill_at(node: RealNode, words: tuple[str, ...], sign: Callable[[], bool], at_once: int) -> None:
    """Run a command so many times at once; kill all when ``sign`` is seen, or see them end before."""
    commands = [
        subprocess.Popen(
            [sys.executable, "-m", "odf_node", *words, "--home", str(node.home)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(at_once)
    ]
    while not sign() and any(each.poll() is None for each in commands):
        time.sleep(0.001)
    for each in commands:
        each.send_signal(signal.SIGKILL)
        each.wait()
    wait_until(lambda: are_gone({each.pid for each in commands}) or None, lambda: "")
