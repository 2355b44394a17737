"""Processes that write tables of one home for a while and are killed with SIGKILL in the middle; then all is counted.

    python tests/support/table_writers.py [SECONDS] [WRITERS]

Each writer adds rows with a number of its own to a log, and counts in a table with a key, of which one row is shared.
It prints a number when its write has returned. A number that was printed is in the log once; any other at most once.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import odf_node

LOG, COUNTS = "soak.log", "soak.counts"
SHARED = -1


def write(home: Path, writer: int, first: int) -> None:
    """Write until the process is killed."""
    with odf_node.open(home) as node:
        log, counts = node.table(LOG), node.table(COUNTS)
        number = first
        while True:
            log.insert([{"writer": writer, "number": number}])
            print(number, flush=True)
            counts.upsert([{"id": writer, "value": number}, {"id": SHARED, "value": number}])
            number += 1


class Writers:
    """The processes, and what they have printed."""

    def __init__(self, home: Path, count: int) -> None:
        self.home = home
        self.printed: dict[int, set[int]] = {each: set() for each in range(count)}
        self.begun: dict[int, int] = dict.fromkeys(range(count), 0)
        self.kills = 0
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, writer: int) -> None:
        words = [sys.executable, __file__, "--write", str(self.home), str(writer), str(self.begun[writer])]
        with self._output(writer).open("ab") as output:
            self._running[writer] = subprocess.Popen(words, stdout=output)

    def has_written(self, writer: int) -> bool:
        """Say whether a write has returned since the process was started."""
        lines = self._output(writer).read_text().split()
        return bool(lines) and int(lines[-1]) >= self.begun[writer]

    def kill(self, writer: int) -> None:
        process = self._running.pop(writer)
        assert process.poll() is None, f"writer {writer} ended by itself"
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1
        self.printed[writer] = {int(line) for line in self._output(writer).read_text().split()}
        # What it was at when it was killed is never tried again under its number.
        self.begun[writer] = max(self.printed[writer], default=self.begun[writer]) + 2

    def _output(self, writer: int) -> Path:
        return self.home.with_suffix(f".{writer}")


def run(folder: Path, seconds: float, count: int, *, seed: int = 0) -> str:
    """Write, kill, and count; a line about what happened.

    Raises:
        AssertionError: A row is lost, or there twice, or a table is not what its history says.
    """
    chance = random.Random(seed)
    home = folder / "home"
    with odf_node.open(home) as node:
        node.create_table(LOG, "writer BIGINT, number BIGINT")
        node.create_table(COUNTS, "id BIGINT, value BIGINT", key=["id"])
        writers = Writers(home, count)
        for each in range(count):
            writers.start(each)
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            victim = chance.randrange(count)
            if writers.has_written(victim):
                time.sleep(chance.uniform(0, 0.3))  # anywhere in its next write
                writers.kill(victim)
                writers.start(victim)
            time.sleep(0.05)
        while not all(map(writers.has_written, range(count))):
            time.sleep(0.05)
        for each in range(count):
            writers.kill(each)
        log, counts = node.table(LOG), node.table(COUNTS)
        rows = log.to_arrow()
        found = Counter(zip(rows.column("writer").to_pylist(), rows.column("number").to_pylist(), strict=True))
        expected = {(writer, number) for writer, numbers in writers.printed.items() for number in numbers}
        assert not expected - found.keys(), f"lost: {sorted(expected - found.keys())[:5]}"
        assert max(found.values(), default=0) <= 1, f"twice: {[each for each, times in found.items() if times > 1][:5]}"
        assert len(found) - len(expected) <= writers.kills, "there is more than the killed had begun"
        versions = [each for each in log.history() if each.rows]
        assert sum(each.rows for each in versions) == len(found)
        state = {each["id"]: each["value"] for each in counts.state().arrow.to_pylist()}
        last = counts.changes(max(counts.history()[0].version - 1, 0)).arrow.to_pylist()
        for each in last:
            if each["_change_type"] in {"insert", "update_postimage"}:
                assert state[each["id"]] == each["value"]
        assert all(not each.problem for each in node.verify(LOG, COUNTS))
        node.table(LOG).insert([{"writer": count, "number": 0}])  # nobody holds a place in the queue any more
    return (
        f"{count} writers, {seconds:g} s, {writers.kills} kills: {len(expected)} rows acknowledged, "
        f"{len(found)} in the log, {len(versions)} versions"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        given = [float(each) for each in sys.argv[1:]]
        seconds_s, writers_count = (*given, *(60.0, 8.0)[len(given) :])
        with tempfile.TemporaryDirectory(prefix="odf-writers-") as place:
            print(run(Path(place), seconds_s, int(writers_count)))
