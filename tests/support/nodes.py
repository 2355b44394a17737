"""Real nodes in real processes: homes, commands, daemons, and the small datasets they exchange."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.cli_in_process import can_run_here, run_here
from support.light_engines import sharing_light_engines
from support.warm_engine import lent_engine, process_folder

COMMAND_S = 600  # guess: several engine starts on a machine that is slow and busy
DAEMON_S = 240  # guess: one start or end of a daemon there

ROOT_MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "${{ env.CITIES }}"}
      read:
        kind: Csv
        header: true
        schema:
          fields:
            - {name: event_time, type: {kind: Option, inner: {kind: Timestamp}}}
            - {name: city, type: {kind: Option, inner: String}}
            - {name: people, type: {kind: Option, inner: Int64}}
      merge: {kind: Snapshot, primaryKey: [city]}
"""

DERIVATIVE_MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: large.cities
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities, alias: c}]
      transform:
        kind: Sql
        engine: spark
        query: SELECT event_time, city, people, people / 1000 AS thousands FROM c WHERE people >= 100000
"""


@dataclass(frozen=True)
class RanCommand:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Read its result as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class RealNode:
    """A home, and commands run on it as a user would.

    With ``has_engine`` they find warm engines, which all tests of a process share. With ``is_apart`` each command is a
    process of its own.
    """

    home: Path
    has_engine: bool = False
    is_apart: bool = False

    def run(self, *words: str, environment: Mapping[str, str] | None = None, standard_input: str = "") -> RanCommand:
        """Run a command to its end, whatever it comes to."""
        with ExitStack() as stack:
            if self.has_engine:
                stack.enter_context(lent_engine())
                stack.enter_context(sharing_light_engines())
            # What a command says does not follow from how long it takes.
            full = os.environ | {"ODF_NODE_PROGRESS_S": "0"} | dict(environment or {})
            return self._run((*words, "--home", str(self.home)), full, standard_input)

    def _run(self, words: Sequence[str], environment: Mapping[str, str], standard_input: str) -> RanCommand:
        if not self.is_apart and can_run_here(environment):
            code, out, err = run_here(words, environment, standard_input.encode())
            return RanCommand(code, out.decode(), err.decode())
        ran = subprocess.run(
            [sys.executable, "-m", "odf_node", *words],
            input=standard_input,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            env=environment,
            check=False,
        )
        return RanCommand(ran.returncode, ran.stdout, ran.stderr)

    def must(self, *words: str, environment: Mapping[str, str] | None = None) -> RanCommand:
        """Run a command that has to succeed."""
        ran = self.run(*words, environment=environment)
        assert ran.code == 0, f"{words}: {ran.out}{ran.err}"
        return ran

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Run the daemon on a free port; give its address, and end it with SIGTERM."""
        ready = self.home.with_suffix(".ready")
        log = self.home.with_suffix(".log")
        with log.open("wb") as stream:
            daemon = subprocess.Popen(
                [
                    *(sys.executable, "-m", "odf_node", "serve", "--http-port", "0"),
                    *("--ready-file", str(ready), "--home", str(self.home)),
                ],
                stderr=stream,
            )
        try:
            yield _wait_for_address(daemon, ready, log)
        finally:
            daemon.terminate()
            assert daemon.wait(timeout=DAEMON_S) == 0, log.read_text()

    def snapshot(self) -> dict[str, bytes]:
        """Return every file of the home, staging aside, by its path."""
        files = (path for path in sorted(self.home.rglob("*")) if path.is_file())
        relative = {str(path.relative_to(self.home)): path for path in files}
        return {name: path.read_bytes() for name, path in relative.items() if not name.startswith("staging/")}


def _wait_for_address(daemon: "subprocess.Popen[bytes]", ready: Path, log: Path) -> str:
    deadline = time.monotonic() + DAEMON_S
    while not ready.exists():
        assert daemon.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    return ready.read_text().strip()


@dataclass(frozen=True)
class Publisher:
    """A node with a root and a derivative, each of which has had two versions."""

    node: RealNode
    source: Path

    def publish(self, rows: str, system_time: str, datasets: tuple[str, ...] = ("cities", "large.cities")) -> None:
        """Overwrite the source and pull the datasets."""
        self.source.write_text(f"event_time,city,people\n{rows}", encoding="utf-8")
        self.node.must(
            "pull", *datasets, "--system-time", system_time,
            environment={"CITIES": self.source.as_uri()},
        )  # fmt: skip


FIRST_ROWS = """\
2024-01-01T00:00:00Z,Oslo,700000
2024-01-01T00:00:00Z,Rome,2800000
2024-01-01T00:00:00Z,Vaduz,5600
"""
SECOND_ROWS = """\
2024-01-01T00:00:00Z,Oslo,717710
2024-01-01T00:00:00Z,Rome,2800000
2024-01-01T00:00:00Z,Vaduz,120000
2024-02-01T00:00:00Z,Turin,841600
"""


def make_publisher(folder: Path, *, steps: int = 2, has_engine: bool = False) -> Publisher:
    """Make a node that has published twice, its derivative in two steps or in one.

    It is a copy of one that is made once a process: its datasets have the same identities in every test.
    ``has_engine`` is about the commands that come now.
    """
    made = _published(steps)
    shutil.copytree(made.node.home, folder / "publisher", ignore=shutil.ignore_patterns("engines"))
    shutil.copy2(made.source, folder / made.source.name)
    return Publisher(RealNode(folder / "publisher", has_engine), folder / made.source.name)


@cache
def _published(steps: int) -> Publisher:
    folder = process_folder() / f"published-{steps}"
    folder.mkdir()
    publisher = Publisher(RealNode(folder / "publisher", has_engine=True), folder / "cities.csv")
    for name, text in (("root.yaml", ROOT_MANIFEST), ("derivative.yaml", DERIVATIVE_MANIFEST)):
        (folder / name).write_text(text, encoding="utf-8")
    publisher.node.must(
        "add", str(folder / "root.yaml"), str(folder / "derivative.yaml"), "--system-time", "2024-01-01T12:00:00Z"
    )
    publisher.publish(FIRST_ROWS, "2024-01-02T12:00:00Z", ("cities", "large.cities") if steps == 2 else ("cities",))
    publisher.publish(SECOND_ROWS, "2024-01-03T12:00:00Z")
    return publisher
