"""Batches of 100 rows pushed one after the other into one root: the rate, and what memory and disk grow by.

    bench_batches.py [SECONDS]      default: 600

Goal: 12 a second, at the end as at the beginning. Prints, ten times: batches a second, processor time of a batch (this
process and its engines), memory of this process and of its engines, and by how many bytes and files the home grew for
each batch since the line before. It does what ``odf-node ingest NAME FILE...`` does with each file once it has started.
"""

import io
import os
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
from support.process_figures import list_family, processor_s, resident_bytes

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
    record = get_dataset(node.store, "rows")
    node.ingestor.push(
        record,
        io.BytesIO(text.encode()),
        source_name=None,
        shown_as="rows",
        event_time=None,
        system_time=find_writing_time(node.store, node.clock, record.id),
    )


def measure(folder: Path) -> tuple[int, int]:
    """Count the bytes and the files below a folder, keeping none: what this remembers is counted as the node's."""
    size = files = 0
    for parent, _, names in os.walk(folder):
        size += sum(Path(parent, name).stat().st_size for name in names)
        files += len(names)
    return size, files


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = RealNode(Path(folder) / "home")
        (Path(folder) / "rows.yaml").write_text(MANIFEST)
        made.must("add", str(Path(folder) / "rows.yaml"))
        with closing(open_node(made.home)) as node:
            numbers = count()
            push(node, next(numbers))
            size, files = measure(made.home)
            for _ in range(PARTS):
                used = processor_s(list_family(os.getpid()))
                began, first = time.monotonic(), next(numbers)
                last = first
                push(node, first)
                while time.monotonic() - began < seconds / PARTS:
                    last = next(numbers)
                    push(node, last)
                batches = last - first + 1
                rate = batches / (time.monotonic() - began)
                family = list_family(os.getpid())
                each_ms = (processor_s(family) - used) / batches * 1000
                own, engines = resident_bytes(family[0]) / 1e6, sum(map(resident_bytes, family[1:])) / 1e6
                size_before, files_before = size, files
                size, files = measure(made.home)
                grown, more = (size - size_before) / batches / 1e3, (files - files_before) / batches
                print(
                    f"{rate:6.1f} a second, {each_ms:6.1f} ms of processor, {own:6.0f} MB, engines {engines:6.0f} MB,"
                    f" {grown:6.1f} kB and {more:4.1f} files a batch",
                    flush=True,
                )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
