"""What the sandbox costs a job of half a minute: the same engine on the same rows, inside of it and outside.

Outside there is no filter of system calls, no namespace of processes, network or IPC, no capability taken away, no
watch, and no reader of its own for the output; only files are shown at the paths, and to the user, that the engine is
built for. Both engines are warm and work in turn, the first place changing each round. The job projects, hashes and
filters rows from file to file, as many as take the wanted time inside. Processor time is that of all processes, which
other work on the machine disturbs less than the clock.

Run: python tests/benchmarks/bench_sandbox_overhead.py [SECONDS]
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench_map_transform import write_input

from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits
from odf_engines.errors import LimitExceededError
from odf_engines.host.session import HostSession
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.profile import Profile, build_command
from odf_engines.sandbox.resources import usage_of
from odf_spark.class_data import find_class_data
from odf_spark.engine import SparkEngine
from odf_spark.runtime import find_runtime, spark_guest
from support.transforms import orders_input, transform_request

GOAL = 1.05
SECONDS = 30.0
ROUNDS = 3
TRIAL_ROWS = 400_000
LIMITS = Limits(wall_s=3600.0, cpu_s=100_000)
QUERY = """
SELECT event_time, id, sha2(concat(status, id, amount), 512) AS seal, amount * 2 AS twice FROM orders WHERE amount > 10
"""
_LEFT_OUT = {
    "--unshare-ipc": 0, "--unshare-pid": 0, "--unshare-net": 0, "--unshare-cgroup": 0, "--new-session": 0,
    "--cap-drop": 1, "--remount-ro": 1,
}  # fmt: skip


class InsideProcess(SandboxedProcess):
    """The usual one, not watched while the other works, so that its watch is counted on its own side only."""

    is_idle = False

    def _find_crossed(self) -> LimitExceededError | None:
        return None if InsideProcess.is_idle else super()._find_crossed()


class OutsideProcess(SandboxedProcess):
    """The same program at the same paths, without what confines it."""

    is_sandbox = False

    def _start(self, profile: Profile, program: Sequence[str]) -> "subprocess.Popen[bytes]":
        command = build_command(find_bubblewrap(), profile, program, filter_descriptor=None)
        at = command.index("--")
        words, less = command[:at], []
        while words:
            if (word := words.pop(0)) in _LEFT_OUT:
                del words[: _LEFT_OUT[word]]
            elif word == "--proc":
                less += ["--dev-bind", words.pop(0), "/proc"]
            else:
                less.append(word)
        return subprocess.Popen(
            [*less, *command[at:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env={},
        )  # fmt: skip

    def _find_crossed(self) -> LimitExceededError | None:
        return None


def run_job(session: HostSession, source: Path, rows: int) -> tuple[float, float]:
    """Run the job; return seconds by the clock and of processors."""
    InsideProcess.is_idle = isinstance(session._process, OutsideProcess)
    before_s = spent(session)
    started = time.perf_counter()
    response = session.transform(transform_request(QUERY, orders_input([source], (0, rows - 1)), limits=LIMITS))
    taken_s = time.perf_counter() - started
    assert response.data_path is not None
    response.data_path.unlink()
    return taken_s, spent(session) - before_s


def spent(session: HostSession) -> float:
    """Processor time of the session's processes and of this one."""
    own = os.times()
    inside = [session._process, session._reader and session._reader._reader._process]
    return own.user + own.system + sum(usage_of(each.process_id).cpu_s for each in inside if each is not None)


def main() -> None:
    """Print both and their ratios."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    engine = SparkEngine()
    engine.prepare()
    runtime = find_runtime()
    cores, class_data = len(os.sched_getaffinity(0)), find_class_data(runtime, engine.cache)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trial = write_input(folder / "trial.parquet", TRIAL_ROWS)
        sessions: dict[str, HostSession] = {}
        try:
            for place, kind in (("inside", InsideProcess), ("outside", OutsideProcess)):
                session = HostSession(
                    spark_guest(runtime, cores=cores, class_data=class_data), folder, LIMITS, process=kind
                )
                sessions[place] = session
                started = time.perf_counter()
                session.start()
                print(f"start {place:7} {time.perf_counter() - started:6.2f} s")
                for _ in range(2):
                    taken_s, _ = run_job(session, trial, TRIAL_ROWS)
            rows = max(TRIAL_ROWS, int(TRIAL_ROWS * seconds / taken_s))
            source = write_input(folder / "rows.parquet", rows)
            found: dict[str, list[tuple[float, float]]] = {place: [] for place in sessions}
            for number in range(ROUNDS):
                for place in sorted(sessions, reverse=bool(number % 2)):
                    found[place].append(run_job(sessions[place], source, rows))
        finally:
            for session in sessions.values():
                session.close()
    print(f"{rows:,} rows, {ROUNDS} rounds in turn")
    for place, pairs in found.items():
        clock, cpu = (", ".join(f"{each:.2f}" for each in column) for column in zip(*pairs, strict=True))
        print(f"{place:7} {clock} s; of processors {cpu} s")
    for position, what in enumerate(("seconds", "processor time")):
        inside, outside = ([pair[position] for pair in found[place]] for place in ("inside", "outside"))
        middle = median(a / b for a, b in zip(inside, outside, strict=True))
        best = min(inside) / min(outside)
        print(f"{what}: inside / outside, best {best:.3f}, median of pairs {middle:.3f} (goal {GOAL})")


if __name__ == "__main__":
    main()
