"""Real daemons on loopback that gossip with each other."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from support.nodes import RealNode

ROUND_MS = 1_000
START_S = 240  # twenty starts at once, on a machine that others use too
_ENVIRONMENT = {
    "ODF_NODE_GOSSIP_ALLOW_PRIVATE": "true",
    "ODF_NODE_GOSSIP_ROUND_MILLISECONDS": str(ROUND_MS),
}


@dataclass
class Daemon:
    """One ``odf-node serve``, and its home."""

    home: Path
    bootstrap: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def node(self) -> RealNode:
        return RealNode(self.home)

    @property
    def log(self) -> Path:
        return self.home.with_suffix(".log")

    @property
    def ready(self) -> Path:
        return self.home.with_suffix(".ready")

    def start(self) -> None:
        self.ready.unlink(missing_ok=True)
        with self.log.open("ab") as stream:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "odf_node", "serve", "--http-port", "0"),
                    *("--ready-file", str(self.ready), "--home", str(self.home)),
                ],
                stderr=stream,
                stdout=stream,
                env=os.environ
                | _ENVIRONMENT
                | ({"ODF_NODE_GOSSIP_BOOTSTRAP": self.bootstrap} if self.bootstrap else {})
                | dict(self.environment),
            )

    def url(self) -> str:
        """Wait until the daemon answers, and say where."""
        wait_until(lambda: self.ready.exists() and bool(self.ready.read_text()), START_S, f"start of {self.home}")
        return self.ready.read_text().strip()

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=120)

    def wait(self) -> int:
        """Wait for the end of a daemon that was told to stop."""
        assert self.process is not None
        try:
            return self.process.wait(timeout=240)
        except subprocess.TimeoutExpired:
            self.kill()
            return -1

    def knows(self, fragment: bytes) -> bool:
        """Whether the daemon keeps an item with these bytes in it."""
        database = self.home / "odf-node.sqlite"
        if not database.exists():
            return False
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=120)) as connection:
            rows = connection.execute("SELECT raw FROM gossip_items").fetchall()
        return any(fragment in raw for (raw,) in rows)


def stop_all(daemons: list[Daemon]) -> list[int]:
    """End all daemons that run, together; return how each ended."""
    running = [daemon for daemon in daemons if daemon.process is not None and daemon.process.poll() is None]
    for daemon in running:
        assert daemon.process is not None
        daemon.process.terminate()
    return [daemon.wait() for daemon in running]


def wait_until(holds: Callable[[], bool], limit_s: float, what: str) -> float:
    """Wait for something that other processes do; return how long it took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < limit_s, f"not within {limit_s} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - began
