"""Verified download through our client against a plain one with the same hash, of the same file, over loopback.

Ours: resumable staging, size checks, SHA3-256, fsync, rename, fsync of the folder. Plain: aiohttp and SHA3-256, the
bytes thrown away. Both read from our server, which runs in a process of its own, in turns; the best of each counts.

Run: ``python tests/benchmarks/bench_pull.py [megabytes]``. Ends with an error below the goal.
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

from odf_node.adapters.peer_addresses import open_peer  # noqa: E402
from odf_node.ports.peer_client import WantedObject  # noqa: E402
from odf_protocol.exchange.block_outlines import iter_wanted  # noqa: E402
from support.exchange_nodes import Chain, TestNode  # noqa: E402

GOAL = 0.7
ROUNDS = 5


Seconds = tuple[float, float]
"""On the wall, and of this process on the processor: what others do on a shared machine disturbs the first more."""


async def pull(url: str, wanted: WantedObject, folder: Path) -> Seconds:
    """Seconds until the object is durable in a fresh store."""
    node = TestNode.create(folder)
    async with await open_peer(f"{url}/demo.data") as peer:
        with node.objects.writing():
            began, used = time.perf_counter(), time.process_time()
            await peer.fetch_objects([wanted], node.objects)
            return time.perf_counter() - began, time.process_time() - used


async def download(url: str, wanted: WantedObject) -> Seconds:
    """Seconds until the last byte is hashed."""
    hasher = hashlib.sha3_256()
    async with aiohttp.ClientSession(read_bufsize=1024 * 1024) as session:
        began, used = time.perf_counter(), time.process_time()
        async with session.get(f"{url}/demo.data/data/{wanted.hash}") as answer:
            while chunk := await answer.content.readany():
                hasher.update(chunk)
        seconds = time.perf_counter() - began, time.process_time() - used
    assert hasher.digest() == wanted.hash.digest
    return seconds


async def main(megabytes: int) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        chain = Chain("demo.data").add(os.urandom(megabytes * 1024 * 1024))
        TestNode.create(folder / "origin").keep(chain)
        wanted = next(iter_wanted(chain.blocks[1].event))
        arguments = [sys.executable, "-m", "support.serve_node", str(folder / "origin"), "0"]
        with subprocess.Popen(  # noqa: ASYNC220 - before anything else runs
            arguments, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            try:
                plain, ours = [], []
                for number in range(ROUNDS):
                    plain.append(await download(url, wanted))
                    ours.append(await pull(url, wanted, folder / f"home-{number}"))
                    shutil.rmtree(folder / f"home-{number}")
            finally:
                server.terminate()
    for what, seconds in (("plain download with SHA3-256", plain), ("verified pull into the store", ours)):
        rate = megabytes / min(wall for wall, _ in seconds)
        print(f"{what}: {rate:7.0f} MiB/s   (of {ROUNDS}, wall/CPU: {_list(seconds)} s)")
    ratio, of_cpu = (min(each[k] for each in plain) / min(each[k] for each in ours) for k in (0, 1))
    print(f"ratio {ratio:.2f} on the wall, {of_cpu:.2f} of the processor (goal {GOAL})")
    return 0 if ratio >= GOAL else 1


def _list(seconds: list[Seconds]) -> str:
    return ", ".join(f"{wall:.2f}/{used:.2f}" for wall, used in seconds)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)))
