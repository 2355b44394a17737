"""A workspace of another ODF implementation whose engine ``spark`` is ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

from odf_engines.sandbox.bubblewrap import find_bubblewrap

# The other implementation starts and ends an engine for every step, always at the same port, and goes on as soon as
# the program that stands for the container has ended. The engine ends a moment later, and the next step would speak to
# that one. So the program ends when nobody listens any more.
_PODMAN = """#!{python}
import ctypes, signal, socket, subprocess, sys, time

engine = None

def stop(*_):
    if engine is None:
        sys.exit(1)
    engine.terminate()

def wait_for_end():
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", 2884)) != 0:
                return
        time.sleep(0.02)

signal.signal(signal.SIGTERM, stop)
is_run = sys.argv[1:2] == ["run"]
if is_run:
    wait_for_end()
end_with_this = lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)
engine = subprocess.Popen(["{podman}", *sys.argv[1:]], preexec_fn=end_with_this)
code = engine.wait()
if is_run:
    wait_for_end()
sys.exit(code)
"""


class Workspace:
    """A workspace of the other implementation, in the folder that ``ODF_PEER`` names.

    Args:
        folder: Existing folder of the workspace's own.
        has_our_fusion: Whether its engine ``datafusion`` is ours too, and not its own.
    """

    def __init__(self, folder: Path, *, has_our_fusion: bool = False) -> None:
        self.folder = folder / "workspace"
        peer = Path(os.environ["ODF_PEER"])
        for path in (self.folder, folder / "engines", folder / "containers", folder / "bin"):
            path.mkdir()
        podman = folder / "bin" / "podman"
        podman.write_text(_PODMAN.format(python=sys.executable, podman=peer / "podman"))
        podman.chmod(0o755)
        serve = [sys.executable, "-m", "odf_foreign.grpc", "--workspace", str(folder / "engines")]
        fusion = [*serve, "--engine", "datafusion"] if has_our_fusion else [str(peer / "engine-datafusion")]
        engines = {"engine-spark": serve, "engine-datafusion": fusion}
        (folder / "engines.json").write_text(json.dumps(engines))
        bubblewrap = find_bubblewrap().path
        self._environment = os.environ | {
            "ENGINE_COMMANDS": str(folder / "engines.json"),
            "PODMAN_STATE": str(folder / "containers"),
            "PATH": f"{podman.parent}:{peer}:{bubblewrap.parent}:{os.environ['PATH']}",
        }
        # The port of the contract is fixed, and somebody else on this machine may use it: a network of its own.
        self._alone = [
            str(bubblewrap),
            "--die-with-parent",
            "--unshare-net",
            "--bind",
            "/",
            "/",
            "--dev-bind",
            "/dev",
            "/dev",
        ]
        self._kamu = [str(peer / "kamu"), "-q"]
        self.run("init")
        for name, value in (("engine.runtime", "Podman"), ("engine.networkNs", "Host"), ("engine.startTimeout", "2m")):
            self.run("config", "set", name, value)

    def run(self, *words: str) -> str:
        """Run a command that has to succeed; give what it printed."""
        return self._run([*self._kamu, *words])

    def run_with_engine(self, *words: str) -> str:
        """Run a command that may start engines, in a network of its own."""
        return self._run([*self._alone, *self._kamu, *words])

    def add(self, system_time: str, *manifests: str) -> None:
        """Add datasets from the text of manifests."""
        for text in manifests:
            (self.folder / "manifest.yaml").write_text(text)
            self.run("--system-time", system_time, "add", "manifest.yaml")

    def ingest(self, system_time: str, name: str, text: str) -> None:
        """Push the text of a CSV file."""
        (self.folder / "rows.csv").write_text(text)
        self.run_with_engine("--system-time", system_time, "ingest", name, "rows.csv")

    def rows(self, name: str) -> list[dict[str, object]]:
        """Give the last 1,000 rows, oldest first."""
        lines = self.run("tail", name, "-n", "1000", "-o", "ndjson").splitlines()
        return [json.loads(line) for line in lines]

    def _run(self, command: list[str]) -> str:
        try:
            ran = self._run_once(command)
        except subprocess.TimeoutExpired:
            # The program was seen to use a core for ever, having done nothing, where it waits for an engine to start.
            ran = self._run_once(command)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout + ran.stderr

    def _run_once(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=300, check=False
        )
