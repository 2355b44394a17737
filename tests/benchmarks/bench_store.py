"""How fast the home is: commit latency, reading a long chain, making objects durable.

    python tests/benchmarks/bench_store.py [BLOCKS]

Blocks are 500 bytes, about what an AddData block takes.
"""

import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from support.store_values import blocks, creation, growth

BLOCK_BYTES = 500
COMMITS = 200
OBJECT_BYTES = 256 * 1024 * 1024


@contextmanager
def measured(what: str, unit: str, count: float) -> Iterator[None]:
    """Print how long the body took, and how much of what that is per second."""
    started_s = time.perf_counter()
    yield
    seconds = time.perf_counter() - started_s
    print(f"{what}: {seconds:.3f} s, {count / seconds:,.0f} {unit}/s")


def bench_commits(store: MetadataStore) -> None:
    """Measure single-block commits one after another, each durable before the next."""
    commit = creation(2)
    store.commit(commit)
    durations_ms = []
    for _ in range(COMMITS):
        commit = growth(commit)
        started_s = time.perf_counter()
        store.commit(commit)
        durations_ms.append((time.perf_counter() - started_s) * 1000)
    durations_ms.sort()
    print(
        f"commit of one block: median {durations_ms[COMMITS // 2]:.2f} ms,"
        f" 99th percentile {durations_ms[COMMITS * 99 // 100]:.2f} ms"
    )


def bench_chain(store: MetadataStore, count: int) -> None:
    """Measure one commit of a whole chain, then reading it in both directions."""
    commit = creation(1)
    commit = replace(commit, blocks=blocks(0, count, size_bytes=BLOCK_BYTES))
    with measured(f"commit of {count:,} blocks at once", "blocks", count):
        store.commit(commit)
    with measured("read the chain", "blocks", count):
        assert sum(1 for _ in store.iter_blocks(commit.dataset_id)) == count
    with measured("read the chain and check hashes", "blocks", count):
        for block in store.iter_blocks(commit.dataset_id):
            assert hashlib.sha3_256(block.raw).digest() == block.hash.digest
    with measured("read the chain backwards", "blocks", count):
        assert sum(1 for _ in store.iter_blocks_backwards(commit.dataset_id)) == count


def bench_objects(objects: ObjectFolder) -> None:
    """Measure a large object: written, hashed, made durable; then checked."""
    chunk = bytes(1024 * 1024)
    with measured("put an object of 256 MiB", "MB", OBJECT_BYTES / 1e6), objects.writing(), objects.stage() as staged:
        for _ in range(OBJECT_BYTES // len(chunk)):
            staged.write(chunk)
        object_hash = staged.hash
        objects.put(staged, object_hash)
    with measured("check it", "MB", OBJECT_BYTES / 1e6):
        objects.check(object_hash)


def main() -> None:
    """Run all benchmarks in a new home on the disk of the temporary folder."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        home = HomeFolder(Path(folder) / "home")
        with closing(MetadataStore(home)) as store:
            bench_commits(store)
            bench_chain(store, count)
        bench_objects(ObjectFolder(home))


if __name__ == "__main__":
    main()
