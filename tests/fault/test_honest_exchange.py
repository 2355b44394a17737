"""Honest data over a bad line: whatever breaks, nothing true is ever refused, and every copy ends up whole."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.exchange.taking import Errand
from odf_node.home import Home
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_node.ports.progress import Silence
from odf_protocol.events import SetInfo
from odf_protocol.multihash import Multihash
from support.exchange_nodes import TestNode
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain

INCREMENTS = int(os.environ.get("HONEST_INCREMENTS", "24"))  # 'make soak' makes a thousand
ATTEMPTS = 40
SEED = 20_240_501
CUT_BYTES = (200, 60_000)  # between a piece of an answer and several slices


class BadLine:
    """Forwards connections to a port; each one breaks after some bytes, until ``heal``."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._random = random.Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_healed = False
        self.cuts = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends = [writer]
        try:
            from_target, to_target = await asyncio.open_connection("127.0.0.1", self._port)
            ends.append(to_target)
            there = asyncio.create_task(self._forward(reader, to_target))
            try:
                await self._forward_back(from_target, writer)
            finally:
                there.cancel()
                await asyncio.gather(there, return_exceptions=True)
        except (ConnectionError, asyncio.CancelledError):
            pass  # a line does not say why it broke
        finally:
            for end in ends:
                end.transport.abort()
                with suppress(ConnectionError):
                    await end.wait_closed()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(16_384):
                writer.write(chunk)
                await writer.drain()

    async def _forward_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._random.randint(*CUT_BYTES)
        while chunk := await reader.read(4_096):
            if not self.is_healed and len(chunk) > left:
                writer.write(chunk[:left])
                await writer.drain()
                self.cuts += 1
                return
            left -= len(chunk)
            writer.write(chunk)
            await writer.drain()

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def bad_line(address: str, seed: int) -> AsyncIterator[tuple[BadLine, str]]:
    line = BadLine(int(address.rsplit(":", 1)[1]), seed)
    server = await asyncio.start_server(line.connected, "127.0.0.1", 0)
    try:
        yield line, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await line.close()


async def pull(node: Node, url: str) -> bool:
    """Pull once; say whether it came to an end."""
    try:
        async with await node.outgoing.open_peer(f"{url}/cities") as peer:
            await node.taking.take(peer, Errand(url=f"{url}/cities", name="cities"))
    except PeerUnavailableError:
        return False
    return True


def grow(chain: PeerChain, rng: random.Random) -> None:
    """Add what a publisher adds: rows that do not compress, or words."""
    if rng.random() < 0.2:
        chain.add(SetInfo(description=f"as of block {len(chain.blocks)}"))
    rows = [(f"{rng.getrandbits(256):064x}", rng.getrandbits(60)) for _ in range(rng.randint(1, 400))]
    chain.add_rows(rows)


def test_no_honest_increment_is_refused_over_a_line_that_breaks(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    chain = root_chain(tmp_path, slices=0)
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    publisher.keep(chain)
    served = TestNode.create(tmp_path / "publisher")
    readers = [Node(Home(tmp_path / f"reader{n}"), FixedClock(NOW)) for n in range(2)]

    async def exchange() -> int:
        async with served.serving() as address, bad_line(address, SEED) as (line, url):
            for _ in range(INCREMENTS):
                grow(chain, rng)
                publisher.keep(chain)
                # One follows closely; the other comes by now and then, and finds several increments at once.
                for reader in readers[: rng.choice((1, 1, 2))]:
                    await pull(reader, url)
            line.is_healed = True
            for reader in readers:
                for _ in range(ATTEMPTS):
                    if await pull(reader, url):
                        break
            return line.cuts

    cuts = asyncio.run(exchange())

    assert cuts > INCREMENTS // 2
    for reader in readers:
        assert list(reader.refusals.iter_reports()) == []
        assert reader.store.get_head(chain.id) == chain.head
        assert set(reader.objects.iter_hashes()) == set(chain.files)
        for object_hash in reader.objects.iter_hashes():
            assert Multihash.of_sha3_256(reader.objects.get_path(object_hash).read_bytes()) == object_hash
        (record,) = reader.verifier.select(["cities"], recursive=False)
        assert reader.verifier.verify(record, replay=False, say=Silence().say).is_valid
        reader.close()
    served.store.close()
