"""Several nodes for a while: publishing, pulling, verifying, cut off and killed; then everybody has the same heads.

    python tests/soak/soak.py [SECONDS] [NODES]

Every node is a real daemon in a process of its own over a home of its own. A driver writes to each node's own dataset,
pulls datasets of one node into another through a line that it cuts at random places, checks stored chains and objects
again, and kills daemons with SIGKILL and pulls in the middle. At the end all lines hold, everybody pulls everything,
and: heads are equal, every object has its hash, nothing is left in staging, no daemon grew in memory or descriptors.

Chains are real and their rows are not: no engine starts. The same seed gives the same choices; it is printed.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from odf_node.adapters.http_client import ClientSettings  # noqa: E402
from odf_node.adapters.peer_addresses import open_peer  # noqa: E402
from odf_node.records.commits import Commit, NewBlock, NewDataset  # noqa: E402
from odf_node.records.datasets import Origin  # noqa: E402
from odf_node.records.errors import HeadMovedError  # noqa: E402
from odf_node.threads import finish_in_thread  # noqa: E402
from odf_protocol.block import decode_block  # noqa: E402
from odf_protocol.errors import NotFoundError, UnavailableError  # noqa: E402
from odf_protocol.events import DatasetKind  # noqa: E402
from odf_protocol.exchange.block_outlines import iter_wanted  # noqa: E402
from support.exchange_nodes import NOON, Chain, TestNode  # noqa: E402

PATIENT = ClientSettings(attempts=3, backoff_s=0.01, max_backoff_s=0.1)
MIN_CHURN_S = 5.0
MEMORY_GROWTH_BYTES = 60_000_000  # guess: caches of the allocator; a leak of one slice a pull is far beyond it
DESCRIPTORS_GROWTH = 12


@dataclass
class SoakNode:
    """A home, the daemon over it, the line to it, and the chain that is written here."""

    place: Path
    name: str
    own: Chain
    process: asyncio.subprocess.Process | None = None
    port: int = 0
    line: asyncio.Server | None = None
    line_port: int = 0
    cut_after: int | None = None
    """Bytes after which the line breaks; None: it holds."""
    cuts: int = 0
    connections: set[asyncio.Task[None]] = field(default_factory=set)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    restarting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @contextmanager
    def open_store(self) -> Iterator[TestNode]:
        """Open the home beside the daemon, as commands do."""
        opened = TestNode.create(self.place)
        with closing(opened.store):
            yield opened

    async def start(self) -> None:
        """Run the daemon; it is ready when this returns."""
        ready = self.place.with_suffix(".ready")
        ready.unlink(missing_ok=True)
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "odf_node", "serve", "--home", str(self.place), "--http-port", "0", "-q"),
            *("--ready-file", str(ready)),
            stderr=asyncio.subprocess.DEVNULL,
        )
        while not ready.exists():
            assert self.process.returncode is None, f"{self.name} ended"
            await asyncio.sleep(0.02)
        self.port = int(ready.read_text().rsplit(":", 1)[1])

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def open_line(self) -> None:
        """Listen where others reach this node, through a line that can be cut."""
        self.line = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.line_port = self.line.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self.line is not None:
            self.line.close()
        for task in tuple(self.connections):
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        left = self.cut_after
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.close()
            self.connections.discard(task)
            return

        async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            nonlocal left
            with suppress(ConnectionError):
                while data := await source.read(16_384):
                    if left is not None:
                        data, left = data[:left], left - len(data[:left])
                    target.write(data)
                    await target.drain()
                    if left == 0:
                        self.cuts += 1
                        break
            for end in (writer, there_writer):
                end.transport.abort() if left == 0 else end.close()

        try:
            await asyncio.gather(pipe(reader, there_writer), pipe(there_reader, writer))
        except asyncio.CancelledError:
            writer.transport.abort()
            there_writer.transport.abort()
        finally:
            self.connections.discard(task)

    def usage(self) -> tuple[int, int]:
        """Resident bytes and open descriptors of the daemon."""
        assert self.process is not None
        proc = Path(f"/proc/{self.process.pid}")
        return int((proc / "statm").read_text().split()[1]) * 4096, len(list((proc / "fd").iterdir()))


@dataclass
class Soak:
    """The whole: nodes, choices, counts."""

    nodes: list[SoakNode]
    choices: random.Random
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    async def run(self, seconds: float) -> None:
        for node in self.nodes:
            await node.open_line()
        await asyncio.gather(*(node.start() for node in self.nodes))
        for node in self.nodes:
            await self.publish(node)
        end = time.monotonic() + max(seconds, MIN_CHURN_S)
        warmed: dict[int, tuple[int, int]] = {}
        # Each at least once, whatever is chosen later.
        for kind in ("publish", "pull", "cut", "abandon", "verify", "kill"):
            await self.step(kind)
        while time.monotonic() < end:
            await asyncio.gather(*(self.step() for _ in range(3)))
            if not warmed and time.monotonic() > end - seconds * 0.6:
                warmed = {node.process.pid: node.usage() for node in self.nodes if node.process is not None}
        for node in self.nodes:
            node.cut_after = None
        for node in self.nodes:
            for other in self.nodes:
                if other is not node:
                    await self.pull(node, other, must=True)
        await self.check(warmed)

    async def step(self, kind: str | None = None) -> None:
        node, other = self.choices.sample(self.nodes, 2)
        kinds = {"publish": 4, "pull": 8, "cut": 6, "abandon": 2, "verify": 2, "kill": 1}
        match kind or self.choices.choices(list(kinds), list(kinds.values()))[0]:
            case "publish":
                await self.publish(node)
            case "pull":
                await self.pull(node, other)
            case "cut":
                # The one that must happen comes before any pull can be over.
                other.cut_after = 200 if kind else self.choices.randrange(200, 20_000)
                await self.pull(node, other)
                other.cut_after = None
            case "abandon":
                task = asyncio.create_task(self.pull(node, other))
                await asyncio.sleep(self.choices.random() * 0.05)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                self.count("abandoned")
            case "verify":
                await asyncio.to_thread(verify, node)
                self.count("verified")
            case _:
                async with node.restarting:
                    await node.kill()
                    await node.start()
                self.count("killed")

    async def publish(self, node: SoakNode) -> None:
        # Chosen and counted here, not in the thread: several steps run side by side.
        data = self.choices.randbytes(self.choices.randrange(1, 200_000))
        # A chain has one writer.
        async with node.publishing:
            await asyncio.to_thread(keep, node, data)
        self.count("published")

    async def pull(self, node: SoakNode, other: SoakNode, *, must: bool = False) -> None:
        try:
            await pull(node, f"http://127.0.0.1:{other.line_port}/{other.own.name}")
            self.count("pulled")
        except (UnavailableError, NotFoundError):
            # A line that was cut, a daemon that was killed, or another pull of the same dataset that was faster.
            if must:
                raise
            self.count("broken")

    async def check(self, warmed: dict[int, tuple[int, int]]) -> None:
        for node in self.nodes:
            with node.open_store() as here:
                for other in self.nodes:
                    assert here.store.get_head(other.own.id) == other.own.head, f"{node.name}: {other.name}"
            await asyncio.to_thread(verify, node)
            assert node.process is not None
            memory, descriptors = node.usage()
            if node.process.pid in warmed:
                memory_then, descriptors_then = warmed[node.process.pid]
                assert memory - memory_then < MEMORY_GROWTH_BYTES, f"{node.name}: {memory_then} to {memory} bytes"
                assert descriptors - descriptors_then < DESCRIPTORS_GROWTH, (
                    f"{node.name}: {descriptors_then} to {descriptors} descriptors"
                )
        for node in self.nodes:
            await node.close()
            with node.open_store() as here:
                swept = here.objects.sweep(here.store.list_referenced_objects, now=NOON, keep_arrived=False)
                assert swept.ran, f"{node.name}: a lease was never given back"
                left = [path for path in here.home.staging.rglob("*") if path.is_file()]
                assert left == [], f"{node.name}: {left}"
                assert set(here.objects.iter_hashes()) == set(here.store.list_referenced_objects()), node.name


def keep(node: SoakNode, data: bytes) -> None:
    """Add a block to the chain that is written here."""
    node.own.add(data)
    with node.open_store() as here:
        here.keep(node.own)


async def pull(node: SoakNode, url: str) -> None:
    """Bring a copy up to date as the services do, without judging rows: these chains have none."""
    with node.open_store() as here:
        await bring(here, url)


async def bring(here: TestNode, url: str) -> None:
    async with await open_peer(url, PATIENT) as peer:
        proposed = await peer.get_head()
        assert proposed.dataset_id is not None
        known = here.store.find_dataset(proposed.dataset_id)
        if known is not None and known.head == proposed.head:
            return
        with here.objects.writing():
            base = None if known is None else known.head
            packed = [block async for block in peer.iter_blocks(after=base, upto=proposed.head)]
            chain = [decode_block(block.raw, expected_hash=None) for block in packed]
            wanted = [item for block in chain for item in iter_wanted(block.event)]
            await peer.fetch_objects(wanted, here.objects)
            new = NewDataset(name=proposed.name, kind=DatasetKind.ROOT, origin=Origin.OWN, created_at=NOON)
            commit = Commit(
                dataset_id=proposed.dataset_id,
                expected_head=None if known is None else known.head.hash,
                blocks=tuple(
                    NewBlock.of(block, pack.signature, pack.step_record)
                    for block, pack in zip(chain, packed, strict=True)
                ),
                chain_state=b"state",
                objects=tuple(item.hash for item in wanted),
                new_dataset=new if known is None else None,
            )
            with suppress(HeadMovedError):
                # Also when the pull is abandoned: no lease may end before its commit, or a sweep takes the objects.
                await finish_in_thread(lambda: here.store.commit(commit))


def verify(node: SoakNode) -> None:
    """Read every chain and every object of a home again."""
    with node.open_store() as here:
        for record in here.store.list_datasets():
            last = None
            for stored in here.store.iter_blocks(record.id):
                block = decode_block(stored.raw, expected_hash=stored.hash)
                assert block.prev_block_hash == last
                last = block.hash
        for object_hash in here.store.list_referenced_objects():
            here.objects.check(object_hash)


async def soak(folder: Path, *, seconds: float, nodes: int, seed: int) -> dict[str, int]:
    """Run all of it; raises where something is not as it must be."""
    made = [SoakNode(folder / f"node-{number}", f"node-{number}", Chain(f"data.{number}")) for number in range(nodes)]
    running = Soak(made, random.Random(seed))
    try:
        await running.run(seconds)
    finally:
        for node in made:
            await node.close()
    return running.counts | {"cuts": sum(node.cuts for node in made)}


def main(words: list[str]) -> int:
    seconds, nodes = float(words[0]) if words else 600.0, int(words[1]) if words[1:] else 10
    seed = random.randrange(2**32)
    print(f"seed {seed}: {nodes} nodes for {seconds:g} s", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(asyncio.run(soak(Path(temporary), seconds=seconds, nodes=nodes, seed=seed))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
