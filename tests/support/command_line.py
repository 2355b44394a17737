"""The command line: run to its end, or as a process that is watched and signalled."""

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from support.cli_in_process import can_run_here, run_here
from support.warm_engine import lent_engine

EXAMPLE = Path(__file__).parents[2] / "examples" / "covid"
PATIENCE_S = 400.0  # guess: several engine starts on a machine that is slow and busy

FIRST_VERSION = "2020-01-22,Chad,1,0,0\n2020-01-22,Peru,2,1,0\n"
SECOND_VERSION = "2020-01-22,Chad,1,0,0\n2020-01-22,Peru,3,1,0\n2020-01-23,Chad,4,0,1\n"


def environment_of(home: Path, **more: str) -> dict[str, str]:
    """The environment of a command on ``home``, without what a developer may have set.

    What it says does not follow from how long it takes.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ODF_NODE_")}
    return {**kept, "ODF_NODE_HOME": str(home), "ODF_NODE_PROGRESS_S": "0", **more}


def run_command(
    home: Path,
    *words: str | Path,
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
    around: Sequence[str | Path] = (),
    has_engine: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``odf-node`` to its end: in this process, or by a command that stands ``around`` it.

    With ``has_engine`` it finds a warm one.
    """
    with lent_engine() if has_engine else nullcontext():
        full = environment_of(home, **(environment or {}))
        if not around and can_run_here(full):
            code, out, err = run_here([str(word) for word in words], full, given)
        else:
            command = [*around, sys.executable, "-m", "odf_node", *words]
            done = subprocess.run(command, env=full, input=given, capture_output=True, check=False, timeout=PATIENCE_S)
            code, out, err = done.returncode, done.stdout, done.stderr
    return subprocess.CompletedProcess(words, code, out.decode(), err.decode())


def start_command(
    home: Path, *words: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start ``odf-node`` with signals and streams of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "odf_node", *words],
        env=environment_of(home, **(environment or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )


def hear_ctrl_c() -> None:
    """Undo what a run of the tests in the background of a shell hands down: that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def bubblewrap(*options: str | Path) -> list[str | Path]:
    """A command that shows what it runs the whole machine, changed by ``options``."""
    return [find_bubblewrap().path, "--die-with-parent", "--dev-bind", "/", "/", *options]


def write_source(path: Path, rows: str) -> dict[str, str]:
    """Write the example's source file; the environment that makes the example poll it."""
    path.write_bytes(gzip.compress(f"Date,Country,Confirmed,Recovered,Deaths\n{rows}".encode(), mtime=0))
    # The time of the file says whether it is new.
    os.utime(path, (len(rows), len(rows)))
    return {"COVID_SOURCE": path.as_uri()}


def list_kept(home: Path) -> dict[str, Any]:
    """Everything that a node keeps: its datasets with their heads, what was done, its objects."""
    with closing(MetadataStore(HomeFolder(home))) as store:
        kept = {"datasets": store.list_datasets(), "audit": list(store.iter_audit(limit=1000))}
    return {**kept, "objects": {path.name for path in (home / "objects").rglob("*") if path.is_file()}}


def descendants(process_id: int) -> set[int]:
    """Processes that the process has started, with theirs."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = {process_id}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process_id}


def wait_until(is_so: Any, what: str, patience_s: float = PATIENCE_S) -> None:
    """Look again and again; there is nothing to be told by."""
    give_up_at = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < give_up_at, f"waited in vain: {what}"
        time.sleep(0.05)


def are_gone(process_ids: set[int]) -> bool:
    """Whether the processes have ended (a dead one that nobody has asked about yet counts as ended)."""

    def is_running(process_id: int) -> bool:
        try:
            state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
            # Threads of a process that was killed end one by one, and the last one gives up its files and locks.
            threads = list(Path(f"/proc/{process_id}/task").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in {"Z", "X"} or len(threads) > 1

    return not any(map(is_running, process_ids))
