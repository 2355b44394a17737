"""Batches of 100 rows pushed one after the other into one root: the rate, and what memory and disk grow by.

    bench_batches.py [SECONDS]      default: 600

Goal: 12 a second, at the end as at the beginning. Prints, ten times: batches a second, memory of this process, and
bytes of the home for each batch. It does what ``odf-node ingest NAME FILE...`` does with each file once it has started.
"""

import io
import sys
import tempfile
import time
from contextlib import closing
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_node.composition import Node, open_node
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.writer import find_writing_time
from support.nodes import RealNode

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: rows
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, ddlSchema: [event_time TIMESTAMP, n BIGINT, text STRING]}
      merge: {kind: Append}
"""
ROWS, PARTS = 100, 10


def push(node: Node, number: int) -> None:
    text = "".join(f"2024-01-01T00:00:{n % 60:02d}Z,{number * ROWS + n},text {n}\n" for n in range(ROWS))
    record = get_dataset(node.chains, "rows")
    node.ingestor.push(
        record,
        io.BytesIO(text.encode()),
        source_name=None,
        shown_as="rows",
        event_time=None,
        system_time=find_writing_time(node.chains, node.clock, record.id),
    )


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def resident_bytes(process: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = RealNode(Path(folder) / "home")
        (Path(folder) / "rows.yaml").write_text(MANIFEST)
        made.must("add", str(Path(folder) / "rows.yaml"))
        with closing(open_node(made.home)) as node:
            numbers = count()
            push(node, next(numbers))
            for _ in range(PARTS):
                began, first = time.monotonic(), next(numbers)
                last = first
                push(node, first)
                while time.monotonic() - began < seconds / PARTS:
                    last = next(numbers)
                    push(node, last)
                rate = (last - first + 1) / (time.monotonic() - began)
                memory = resident_bytes("self") / 1e6
                each = size_bytes(made.home) / (last + 1) / 1e3
                print(f"{rate:6.1f} a second, {memory:6.0f} MB, {each:6.1f} kB a batch", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
