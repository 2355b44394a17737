"""Two large slices and a long chain, cloned by whole commands: another implementation from itself, ours from ours.

Both sides hold the same bytes, serve them from a process of their own over loopback and are asked by a new home, in
turn; the shortest time of each counts. Ours checks more: every row, beside the hashes.

Ours is measured with every row checked, and with *rows later*, which checks what the other one checks when it pulls:
blocks, and files by their hashes. The goals are held where both do the same: data against rows later, the chain, which
has no rows, against the first.

`make compile` first: where Python keeps nothing, our command compiles all of itself.

Run: ODF_PEER=FOLDER python tests/benchmarks/bench_pull_with_kamu.py [MEGABYTES] [BLOCKS] [SLICES]

170, 4,000 and 2 by default. Where there is one slice, neither side can share the work between processors so well.
"""

import asyncio
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_protocol.events import AddData
from odf_protocol.timestamp import Timestamp
from support.daemons import daemon
from support.kamu_workspace import PeerWorkspace
from support.nodes import RealNode
from support.offers import PeerChain, root_chain
from support.signing import NOON

ROW_BYTES = 132  # of a text of 128 characters that does not compress, and a number
ROUNDS = 5
GOALS = {"data": 4.0, "chain": 10.0}


@dataclass
class Times:
    """The least of several rounds; processor time is that of the command and of what it waited for."""

    min_s: float = float("inf")
    min_cpu_s: float = float("inf")

    @contextmanager
    def measured(self) -> Iterator[None]:
        began, cpu_s = time.perf_counter(), _cpu_s()
        yield
        self.min_s = min(self.min_s, time.perf_counter() - began)
        self.min_cpu_s = min(self.min_cpu_s, _cpu_s() - cpu_s)

    def __str__(self) -> str:
        return f"{self.min_s:.2f} s ({self.min_cpu_s:.2f} s of processor)"


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def large_slices(folder: Path, megabytes: int, slices: int) -> PeerChain:
    chain = root_chain(folder, slices=0)
    for _ in range(slices):
        rows = [(os.urandom(64).hex(), number) for number in range(megabytes * 1_000_000 // ROW_BYTES // slices)]
        chain.add_rows(rows)
    return chain


def long_chain(folder: Path, blocks: int) -> PeerChain:
    chain = root_chain(folder, slices=0)
    for number in range(blocks - len(chain.blocks)):
        chain.add(AddData(new_watermark=Timestamp(NOON.seconds + number)))
    return chain


@contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """A place for a copy that is removed at once: memory that a machine lends anew for each would be measured too."""
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def measure(what: str, chain: PeerChain, folder: Path) -> bool:
    layout = folder / "layout" / "cities"
    chain.write_layout(layout)
    size = sum(map(len, chain.files.values())) / 1e6
    origin = await PeerWorkspace.create(folder / "theirs")
    await origin.run("pull", layout.as_uri(), "--as", "cities", "--no-alias")
    node = RealNode(folder / "ours", is_apart=True)
    node.must("pull", layout.as_uri(), "--policy", "unsigned")
    theirs, ours, rows_later = Times(), Times(), Times()
    async with origin.serving() as server:
        with daemon(node.home) as serving:
            pull = ("pull", f"{serving.url}/cities", "--policy", "unsigned")
            for number in range(ROUNDS):
                with scratch(folder / f"their-copy-{number}") as place:
                    copy = await PeerWorkspace.create(place)
                    with theirs.measured():
                        await copy.run("pull", f"{server.smart}/cities", "--as", "cities", "--no-alias")
                    assert await copy.find_head("cities") == str(chain.head.hash)
                for times, options in ((ours, ()), (rows_later, ("--rows-later",))):
                    with scratch(folder / f"our-copy-{number}{''.join(options)}") as place, times.measured():
                        RealNode(place, is_apart=True).must(*pull, *options)
    print(f"{what} of {len(chain.blocks):,} blocks and {size:.0f} MB: theirs {theirs}, goal {GOALS[what]:g} x as fast")
    for way, times in (("every row", ours), ("rows later", rows_later)):
        print(f"  ours, {way}: {times}, {theirs.min_s / times.min_s:.1f} x as fast")
    alike = rows_later if what == "data" else ours
    return theirs.min_s / alike.min_s >= GOALS[what]


async def main(megabytes: int = 170, blocks: int = 4_000, slices: int = 2) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("data", "chain"):
            (folder / name).mkdir()
        fast = await measure("data", large_slices(folder / "data", megabytes, slices), folder / "data")
        return 0 if await measure("chain", long_chain(folder / "chain", blocks), folder / "chain") and fast else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(int, sys.argv[1:]))))
