"""The daemon under load: its start with a large home, many pulls at once, many small slices, a sync with nothing new.

    python tests/benchmarks/bench_daemon.py [start|pulls|slices|noop ...]

Goals: ready in 2 s with 1,000 datasets and 1,000,000 blocks; 100 pulls at once in bounded memory; 10,000 small slices
at half the rate of plain small GETs; a sync of 100,000 blocks with nothing new in two round trips and 5 kB. The server
is a process of its own. Ends with an error below a goal.
"""

import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

from odf_node.adapters.peer_addresses import open_peer  # noqa: E402
from odf_node.home_folder import HomeFolder  # noqa: E402
from odf_node.records.datasets import Head  # noqa: E402
from odf_node.store import MetadataStore  # noqa: E402
from odf_protocol.exchange.block_outlines import iter_wanted  # noqa: E402
from support.exchange_nodes import Chain, TestNode  # noqa: E402
from support.store_values import blocks, creation, growth  # noqa: E402

DATASETS, BLOCKS_EACH = 1_000, 1_000
SMALL_SLICES = 10_000
PULLS = 100
PULL_BYTES = 20_000_000


@contextmanager
def daemon(home: Path) -> Iterator[tuple[str, int, float]]:
    """Run ``odf-node serve`` and give its address, its process and the seconds until it was ready."""
    ready = home.with_suffix(".ready")
    words = ["serve", "--home", str(home), "--http-port", "0", "--ready-file", str(ready), "-q"]
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "odf_node", *words], stderr=subprocess.DEVNULL)
    try:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.005)
        yield ready.read_text().strip(), process.pid, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def peak_memory_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def cpu_s(pid: int) -> float:
    """Seconds that a process has used of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bench_start(folder: Path) -> bool:
    """A large home, opened for the first time by this process."""
    home = HomeFolder(folder / "home")
    with closing(MetadataStore(home)) as store:
        for number in range(DATASETS):
            first = creation(number, name=f"data.{number:04}")
            store.commit(first)
            store.commit(growth(first, blocks=blocks(1, BLOCKS_EACH - 1, salt=str(number), size_bytes=400)))
    size_bytes = home.database.stat().st_size
    seconds, used = [], []
    for _ in range(3):
        with daemon(home.path) as (_, pid, took_s):
            seconds.append(took_s)
            used.append(cpu_s(pid))
            memory = peak_memory_bytes(pid)
    print(
        f"start: {DATASETS:,} datasets, {DATASETS * BLOCKS_EACH:,} blocks, {size_bytes / 1e6:,.0f} MB: ready after "
        f"{', '.join(f'{value:.2f}' for value in seconds)} s (goal 2), {', '.join(f'{value:.2f}' for value in used)} s "
        f"of the processor, {memory / 1e6:,.0f} MB of memory"
    )
    return min(seconds) < 2


def bench_pulls(folder: Path) -> bool:
    """Many at once, in four processes."""
    chain = Chain("demo.data")
    for _ in range(4):
        chain.add(os.urandom(PULL_BYTES // 4))
    TestNode.create(folder / "home").keep(chain)
    with daemon(folder / "home") as (url, pid, _):
        before = peak_memory_bytes(pid)
        began = time.perf_counter()
        script = (
            "import asyncio,sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
            "from benchmarks import bench_daemon as b\n"
            "async def main():\n"
            "    async with asyncio.TaskGroup() as group:\n"
            "        for number in range(int(sys.argv[4])):\n"
            "            group.create_task(b.drain(sys.argv[2], Path(sys.argv[3]).read_text().split()))\n"
            "asyncio.run(main())\n"
        )
        names = folder / "names"
        names.write_text("\n".join(str(item.hash) for block in chain.blocks for item in iter_wanted(block.event)))
        workers = [
            subprocess.Popen([sys.executable, "-c", script, str(TESTS), url, str(names), str(PULLS // 4)])
            for _ in range(4)
        ]
        assert [worker.wait() for worker in workers] == [0] * 4
        seconds, after = time.perf_counter() - began, peak_memory_bytes(pid)
    grown = after - before
    print(
        f"pulls: {PULLS} at once, {PULLS * PULL_BYTES / 1e9:.1f} GB in {seconds:.1f} s; the server's memory grew from "
        f"{before / 1e6:.0f} to {after / 1e6:.0f} MB"
    )
    return grown < 300_000_000


async def drain(url: str, names: list[str]) -> None:
    """One puller: everything of the dataset, hashed and thrown away, with the client's own connections."""
    async with aiohttp.ClientSession(read_bufsize=1024 * 1024) as session:
        async with session.get(f"{url}/_odf/v1/datasets/demo.data/blocks") as answer:
            assert answer.status == 200
            await answer.read()
        for name in names:
            for attempt in range(200):
                async with session.get(f"{url}/demo.data/data/{name}") as answer:
                    if answer.status == 503:
                        await asyncio.sleep(0.05 * (attempt + 1))
                        continue
                    hasher = hashlib.sha3_256()
                    while chunk := await answer.content.readany():
                        hasher.update(chunk)
                    assert name.endswith(hasher.hexdigest())
                    break


def bench_slices(folder: Path) -> bool:
    """Many small objects into a store, against the same GETs thrown away."""
    chain = Chain("demo.data")
    for number in range(SMALL_SLICES):
        chain.add(b"%d" % number * 50)
    node = TestNode.create(folder / "home")
    node.keep(chain)
    wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]

    async def plain(url: str) -> tuple[float, float]:
        async with aiohttp.ClientSession() as session:
            queue = list(wanted)

            async def work() -> None:
                while queue:
                    item = queue.pop()
                    async with session.get(f"{url}/demo.data/data/{item.hash}") as answer:
                        await answer.read()

            began, used = time.perf_counter(), time.process_time()
            await asyncio.gather(*(work() for _ in range(4)))
            return time.perf_counter() - began, time.process_time() - used

    async def ours(url: str, place: Path) -> tuple[float, float]:
        copy = TestNode.create(place)
        async with await open_peer(f"{url}/demo.data") as peer:
            with copy.objects.writing():
                began, used = time.perf_counter(), time.process_time()
                await peer.fetch_objects(wanted, copy.objects)
                return time.perf_counter() - began, time.process_time() - used

    with daemon(folder / "home") as (url, _, _):
        pairs = [(asyncio.run(plain(url)), asyncio.run(ours(url, folder / f"copy-{number}"))) for number in range(2)]
    ratio, of_cpu = (max(plain_s[k] / ours_s[k] for plain_s, ours_s in pairs) for k in (0, 1))
    shown = ", ".join(f"{SMALL_SLICES / a:,.0f} and {SMALL_SLICES / b:,.0f}" for (a, _), (b, _) in pairs)
    print(
        f"slices: plain GETs and durable objects a second: {shown}; ratio {ratio:.2f} (goal 0.5), "
        f"{of_cpu:.2f} of this process's seconds on the processor"
    )
    return ratio >= 0.5


def bench_noop(folder: Path) -> bool:
    """What a sync with nothing new asks and hears."""
    count = 100_000
    home = HomeFolder(folder / "home")
    with closing(MetadataStore(home)) as store:
        first = creation(1, name="demo.data")
        store.commit(first)
        grown = store.commit(growth(first, blocks=blocks(1, count - 1, size_bytes=100)))
        store.set_published(first.dataset_id, True)
    head: Head = grown.head
    sent = heard = requests = 0

    async def relay(url: str) -> int:
        nonlocal sent, heard, requests
        host, port = url.removeprefix("http://").split(":")

        async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_up: bool) -> None:
            nonlocal sent, heard, requests
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                while data := await reader.read(65_536):
                    if is_up:
                        sent, requests = sent + len(data), requests + data.count(b" HTTP/1.1\r\n")
                    else:
                        heard += len(data)
                    writer.write(data)
                    await writer.drain()
            writer.close()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up_reader, up_writer = await asyncio.open_connection(host, int(port))
            with contextlib.suppress(asyncio.CancelledError):  # the relay ends while somebody is connected
                await asyncio.gather(pipe(reader, up_writer, True), pipe(up_reader, writer, False))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with await open_peer(f"{address}/demo.data") as peer:
            assert (await peer.get_head()).head == head
        server.close()
        return 0

    with daemon(home.path) as (url, _, _):
        began = time.perf_counter()
        asyncio.run(relay(url))
        seconds = time.perf_counter() - began
    print(
        f"noop: {count:,} blocks, nothing new: {requests} round trips, {sent} bytes out and {heard} back, "
        f"{seconds * 1000:.0f} ms (goals 2 and 5,000)"
    )
    return requests <= 2 and sent + heard <= 5000


BENCHES = {"start": bench_start, "pulls": bench_pulls, "slices": bench_slices, "noop": bench_noop}


def main(names: list[str]) -> int:
    good = True
    for name in names or list(BENCHES):
        with tempfile.TemporaryDirectory() as temporary:
            good &= BENCHES[name](Path(temporary))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
