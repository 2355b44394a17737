"""What recording costs: reads and writes of one home, and how much of their time is spent for the audit log.

Run: python tests/benchmarks/bench_audit.py [FOLDER]

What is spent for the log is measured where it is spent, on the thread that reads or writes: hearing of a read or write,
and the rows in the transaction of a commit. Whole runs with and without it differ by less than those of one kind do
among each other on a machine that does anything else. The claim is AUDIT-18.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import odf_node
from odf_node.cli.main import main
from odf_node.store import commits

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: ["city STRING", "people BIGINT"]}
      merge: {kind: Append}
"""
ROWS = 100_000
READS = 60
WRITES = 30


class Clock:
    """Adds up the time that is spent in what it is put around."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Put it around something."""

        def timed(*given: Any, **named: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return work(*given, **named)
            finally:
                if threading.current_thread() is threading.main_thread():
                    self.spent_s += time.perf_counter() - began_s

        return timed


def compare(clock: Clock, what: str, times: int, work: Callable[[], object]) -> None:
    """Measure how long work takes, and how much of that is spent for the log, and print the medians."""
    found: list[tuple[float, float]] = []
    work()
    for _ in range(times):
        clock.spent_s, began_s = 0.0, time.perf_counter()
        work()
        found.append((time.perf_counter() - began_s, clock.spent_s))
    whole_ms, spent_ms = (statistics.median(each) * 1000 for each in zip(*found, strict=True))
    print(f"{what:<34} {whole_ms:9.2f} ms  {spent_ms:9.3f} ms  {spent_ms / whole_ms * 100:6.2f} %")


def run(folder: Path) -> None:
    """Make a home in a folder and measure."""
    manifest, home = folder / "cities.yaml", folder / "home"
    manifest.write_text(MANIFEST)
    assert main(["--home", str(home), "add", str(manifest)]) == 0
    rows = b"city,people\n" + b"".join(b"city %d,%d\n" % (n, n) for n in range(ROWS))
    with odf_node.open(home) as node:
        node.ingest("cities", rows)
        clock, log = Clock(), node.inner.store.access
        log.note_read, log.note_write = clock.around(log.note_read), clock.around(log.note_write)  # type: ignore[method-assign]
        commits.insert_sealed = clock.around(commits.insert_sealed)  # type: ignore[attr-defined]
        print(f"{'':<34} {'takes':>12}  {'for the log':>12}")
        compare(clock, f"read of {ROWS:,} rows, to_arrow", READS, lambda: node.table("cities").to_arrow())
        compare(clock, "SQL, one sum", READS, lambda: node.sql("SELECT sum(people) AS n FROM cities"))
        compare(clock, "ingest of one row", WRITES, lambda: node.ingest("cities", b"city,people\nLima,1\n"))
        compare(clock, f"ingest of {ROWS:,} rows", WRITES // 3, lambda: node.ingest("cities", rows))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="odf-audit-", dir=sys.argv[1] if len(sys.argv) > 1 else None) as made:
        run(Path(made))
