"""Runs a target over kept inputs and repeatable mutations, under limits: ``python plain.py TARGET [count] [seed]``.

``all`` runs every target, each in a process of its own, and says what each ended with: 0 if nothing was found.

Memory is limited for the whole process, time per input; the input on trial lies in a file, so that whoever started this
finds it if the process is ended. Prints ``TARGET: n inputs, ...`` and exits with 0; 1 and the input's file otherwise.
"""

import contextlib
import os
import resource
import sys
import time
import traceback
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.mutations import iter_mutations
from fuzz.targets import ROOT, TARGETS

MAX_INPUT_S = 1.0
MAX_MEMORY_BYTES = 256 << 20
"""What inputs of up to 100 KB may cost beyond the program.  # guess: a pack unpacks to 21 MiB, copied a few times"""
CORPUS = ROOT / "tests" / "data" / "fuzz"


def main(name: str, count: int, seed: int, trial: Path) -> int:
    """Run one target; return the exit status."""
    target = TARGETS[name]
    seeds = list(target.seeds())
    kept = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]
    with contextlib.suppress(Exception):  # once before the limits, for what is loaded on first use
        target.run(seeds[0])
    base_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _limit_memory()
    slowest_s, tried = 0.0, 0
    with trial.open("wb", buffering=0) as file:
        for data in chain(kept, seeds, iter_mutations([*seeds, *kept], count, seed=seed)):
            os.pwrite(file.fileno(), data, 0)
            os.ftruncate(file.fileno(), len(data))
            started = time.process_time()
            try:
                target.run(data)
            except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
                traceback.print_exc()
                print(f"{name}: breaks on {trial} ({len(data)} bytes)")
                return 1
            took_s = time.process_time() - started
            slowest_s, tried = max(slowest_s, took_s), tried + 1
            if took_s > MAX_INPUT_S:
                print(f"{name}: {took_s:.1f} s for {trial} ({len(data)} bytes)")
                return 1
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base_kib) / 1024
    print(f"{name}: {tried} inputs, slowest {1000 * slowest_s:.0f} ms, {grown_mib:.0f} MiB more memory")
    if grown_mib * (1 << 20) > MAX_MEMORY_BYTES:
        print(f"{name}: more than {MAX_MEMORY_BYTES >> 20} MiB")
        return 1
    return 0


def main_of_all(count: int, seed: int, folder: Path) -> int:
    """Run every target in a fork, so that all of them load the program once; return the exit status."""
    codes = []
    for name in TARGETS:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = main(name, count, seed, folder / f"finding-{name}")
                sys.stdout.flush()
            finally:
                os._exit(status)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(f"{name}: ended with {codes[-1]}", flush=True)
    return int(any(codes))


def _limit_memory() -> None:
    status = Path("/proc/self/status").read_text()
    data_kib = int(status.partition("VmData:")[2].split()[0])
    limit = data_kib * 1024 + MAX_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


if __name__ == "__main__":
    arguments = sys.argv[1:] + ["2000", "1"][len(sys.argv) - 2 :]
    folder = Path(os.environ.get("FUZZ_FINDINGS", "."))
    if arguments[0] == "all":
        sys.exit(main_of_all(int(arguments[1]), int(arguments[2]), folder))
    sys.exit(main(arguments[0], int(arguments[1]), int(arguments[2]), folder / f"finding-{arguments[0]}"))
