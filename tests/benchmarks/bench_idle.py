"""Processor time that ``serve`` with a warm engine uses while no query runs: ``bench_idle.py [SECONDS]``.

Prints what each process of the daemon uses, in percent of one core, read from ``/proc``.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_engines.sandbox.resources import activity_of
from support.nodes import make_publisher
from support.signed_in import SignedIn

SETTLE_S = 15.0  # what a first request sets in motion ends
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def spent_s(process_id: int) -> float:
    """Processor time of one process so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def main(seconds: float) -> None:
    """Measure one daemon."""
    with tempfile.TemporaryDirectory() as folder:
        publisher = make_publisher(Path(folder))
        with publisher.node.serving() as url:
            SignedIn.by(publisher.node, url, "--inspect").ask("SELECT count(*) FROM cities", "spark")
            time.sleep(SETTLE_S)
            daemons = [int(each.name) for each in Path("/proc").glob("[0-9]*") if is_daemon(each, folder)]
            found = [each for daemon in daemons for each in activity_of(daemon).process_ids]
            before = {each: spent_s(each) for each in found}
            time.sleep(seconds)
            for each in found:
                name = Path(f"/proc/{each}/comm").read_text().strip()
                print(f"{name:16} {100 * (spent_s(each) - before[each]) / seconds:6.2f} %")
            total = sum(spent_s(each) - before[each] for each in found)
            print(f"{'all':16} {100 * total / seconds:6.2f} % of a core")


def is_daemon(process: Path, folder: str) -> bool:
    """Say whether a process is the daemon of a home below ``folder``."""
    try:
        words = (process / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return False
    return "serve" in words and any(word.startswith(folder) for word in words)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
