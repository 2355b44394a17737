"""Rates by a clock of the test's own, and how much moves at once, on real servers (DAEMON-11, DAEMON-20, DAEMON-21)."""

import asyncio
import io
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_push import push_dataset
from odf_node.adapters.packing import iter_packed
from odf_node.adapters.peer_addresses import open_peer, open_peers
from odf_node.byte_rate import MAX_DEBT_S, ByteRate, Pacing, StoppedError
from odf_node.cli.context import CommandContext
from odf_node.configuration import Configuration, LimitSettings
from odf_node.http.middleware import Handler
from odf_node.http.push import RECEIVE_RATE
from odf_node.http.sending import SEND_RATE
from odf_node.http.served_node import Live
from odf_node.ports.pushes import PushedHead
from odf_node.threads import finish_in_thread
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.exchange.object_parts import LEAF_BYTES
from odf_protocol.exchange.packs import encode_pack
from odf_smart.batches import plan_batch
from odf_smart.peer import SmartPeer
from odf_smart.pushing import SmartPush
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode, serving
from support.http_server import serving as serving_files
from support.nodes import RealNode
from support.offers import root_chain
from support.turned_clock import TurnedClock
from support.whole_app import create_whole_app

RATE = 10_000
BLOCKS = 150
PACKED_BLOCKS = 400  # packed, these take as much
OBJECTS = 6


def message_bytes(node: TestNode, chain: Chain) -> int:
    """At least what the blocks take in a message: a byte is a number and a comma."""
    planned = plan_batch(node.store, chain.id, after=-1, upto=chain.head.sequence_number)
    return 2 * len(planned.batch.payload_bytes())


def many_blocks(count: int = BLOCKS) -> Chain:
    chain, bytes_of = Chain("demo.data"), random.Random(1).randbytes
    for _ in range(count):
        chain.add(bytes_of(8))
    return chain


# One rate, pure


def test_message_is_paid_for_bit_by_bit_so_that_others_move_meanwhile() -> None:
    clock = TurnedClock()
    asyncio.run(clock.rate(RATE).spend(10 * RATE, max_s=60))
    assert 9 < clock.passed_s < 10
    # Nobody who shares the rate ever waits longer.
    assert max(clock.waits) < 0.2


def test_what_others_would_not_wait_for_is_paid_by_whoever_moved_it_before_it_moves_more() -> None:
    clock = TurnedClock()
    rate = clock.rate(RATE)

    async def move() -> None:
        await rate.spend(100 * RATE, max_s=10)
        assert 10 <= clock.passed_s < 11
        assert rate.find_wait_s() < 1
        await rate.spend(50 * RATE, max_s=20)
        assert 30 <= clock.passed_s < 31
        await rate.wait()
        assert 148 < clock.passed_s < 151

    asyncio.run(move())


def test_large_message_of_one_mover_keeps_nobody_else_waiting() -> None:
    clock = TurnedClock()
    rate = clock.rate(RATE)

    async def move() -> None:
        await rate.wait()
        rate.take(1000 * RATE)
        await asyncio.create_task(rate.wait())
        assert clock.passed_s < MAX_DEBT_S + 0.1
        await asyncio.to_thread(rate.hold, threading.Event())
        assert clock.passed_s < MAX_DEBT_S + 0.1
        await rate.wait()
        assert 997 < clock.passed_s < 1001

    asyncio.run(move())


def test_thread_that_owes_pays_before_it_reads_more() -> None:
    clock = TurnedClock()
    rate = clock.rate(RATE)
    rate.take(50 * RATE)
    assert Pacing(rate).read(io.BytesIO(b"x"), 1) == b"x"
    assert 48 < clock.passed_s < 51


def test_rate_that_was_changed_forgets_what_was_owed() -> None:
    clock = TurnedClock()
    rate = clock.rate(RATE)
    rate.take(100 * RATE)
    rate.set(2 * RATE)
    rate.hold(threading.Event())
    assert clock.passed_s == 0


def test_what_is_paid_for_only_as_long_as_others_wait_is_held_against_nobody() -> None:
    clock = TurnedClock()
    rate = clock.rate(RATE)
    assert 89 * RATE < asyncio.run(rate.pay(100 * RATE, max_s=10)) < 91 * RATE
    assert 10 <= clock.passed_s < 11
    assert rate.find_wait_s() < 1


def test_no_rate_makes_nobody_wait() -> None:
    clock = TurnedClock()
    asyncio.run(clock.rate(0).spend(10**12, max_s=60))
    assert clock.passed_s == 0


def test_file_is_read_whole_no_faster_than_its_rate_allows() -> None:
    clock, content = TurnedClock(), bytes(5 * RATE)
    file = Pacing(clock.rate(RATE)).pace(io.BytesIO(content))
    assert file.read(3 * RATE) == content[: 3 * RATE]
    assert file.read(10 * RATE) == content[3 * RATE :]
    assert file.read(1) == b""
    assert 4 <= clock.passed_s < 6
    assert Pacing(ByteRate()).pace(io.BytesIO(content)).read(len(content)) == content


@in_loop
async def test_cancelled_task_ends_its_thread_in_the_middle_of_a_file() -> None:
    reading = threading.Event()

    def hold(stopped: threading.Event, _wait_s: float) -> bool:
        reading.set()
        return stopped.wait()

    # Time that never passes: only being stopped ends the wait.
    pacing = Pacing(ByteRate(RATE, now_s=lambda: 0.0, hold=hold))
    ends: list[BaseException] = []

    def read() -> None:
        try:
            pacing.read(io.BytesIO(bytes(10 * RATE)), 10 * RATE)
        except StoppedError as end:
            ends.append(end)
            raise

    task = asyncio.create_task(finish_in_thread(read, stop=pacing.stop))
    await asyncio.to_thread(reading.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(ends) == 1


# The Smart Transfer Protocol's conversation


@asynccontextmanager
async def limited(node: TestNode, **limits: int) -> AsyncIterator[tuple[str, TurnedClock]]:
    """Serve with the rates of both directions by a clock of the test's own."""
    app, clock = create_whole_app(node.served, live=Live(Configuration(limits=LimitSettings(**limits)))), TurnedClock()
    app[SEND_RATE], app[RECEIVE_RATE] = clock.rate(0), clock.rate(0)
    async with serving(app) as url:
        yield url, clock


@pytest.mark.parametrize("side", ["client", "server"])
@in_loop
async def test_blocks_of_a_smart_pull_keep_to_the_rate_of_either_side(tmp_path: Path, side: str) -> None:
    node, chain, here = TestNode.create(tmp_path / "home"), many_blocks(), TurnedClock()
    node.keep(chain)
    settings = ClientSettings(attempts=1, rate=here.rate(RATE if side == "client" else 0))
    async with limited(node, send_bytes_per_second=RATE if side == "server" else 0) as (url, there):
        client = await HttpClient(settings).__aenter__()
        async with SmartPeer(client, URL(f"{url}/demo.data/")) as peer:
            head = await peer.get_head()
            blocks = [block.raw async for block in peer.iter_blocks(after=None, upto=head.head)]
    assert blocks == [block.raw for block in chain.blocks]
    min_s = message_bytes(node, chain) / RATE - 1
    assert min_s > 1
    waited = {"client": here, "server": there}
    assert waited.pop(side).passed_s > min_s
    assert [clock.passed_s for clock in waited.values()] == [0]


@pytest.mark.parametrize("side", ["client", "server"])
@in_loop
async def test_blocks_of_a_smart_push_keep_to_the_rate_of_either_side(tmp_path: Path, side: str) -> None:
    (node, receiver), chain = (TestNode.create(tmp_path / name) for name in ("a", "b")), many_blocks()
    here = TurnedClock()
    node.keep(chain)
    # What waits is the blocks' message: objects would wait too.
    receiver.put_objects(chain.objects.values())
    receiver.put_token()
    settings = ClientSettings(attempts=1, token=TOKEN, rate=here.rate(RATE if side == "client" else 0))
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    async with (
        limited(receiver, receive_bytes_per_second=RATE if side == "server" else 0) as (url, there),
        HttpClient(settings) as client,
    ):
        await SmartPush(client, URL(f"{url}/demo.data/"), proposed, node.store, node.objects, None).run()
    assert receiver.store.get_head(chain.id) == chain.head
    min_s = message_bytes(node, chain) / RATE - 1
    waited = {"client": here, "server": there}
    assert waited.pop(side).passed_s > min_s
    assert [clock.passed_s for clock in waited.values()] == [0]


# Packs of the exchange


def pack_bytes(node: TestNode, chain: Chain) -> int:
    body, _ = encode_pack(iter_packed(node.store, chain.id, -1, chain.head.sequence_number, with_records=True))
    return len(body)


@in_loop
async def test_pack_that_is_pulled_keeps_to_the_rate_of_the_server(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "home"), many_blocks(PACKED_BLOCKS)
    node.keep(chain)
    async with (
        limited(node, send_bytes_per_second=RATE) as (url, there),
        await open_peer(f"{url}/demo.data", ClientSettings(attempts=1)) as peer,
    ):
        head = await peer.get_head()
        blocks = [block.raw async for block in peer.iter_blocks(after=None, upto=head.head)]
    assert blocks == [block.raw for block in chain.blocks]
    min_s = pack_bytes(node, chain) / RATE - 1
    assert min_s > 1
    assert there.passed_s > min_s


@in_loop
async def test_pack_that_is_pushed_keeps_to_the_rate_of_the_server(tmp_path: Path) -> None:
    (node, receiver), chain = (TestNode.create(tmp_path / name) for name in ("a", "b")), many_blocks(PACKED_BLOCKS)
    node.keep(chain)
    # What waits is the pack: objects would wait too.
    receiver.put_objects(chain.objects.values())
    receiver.put_token()
    settings = ClientSettings(attempts=1, token=TOKEN)
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    async with limited(receiver, receive_bytes_per_second=RATE) as (url, there):
        await push_dataset(f"{url}/demo.data", proposed, store=node.store, objects=node.objects, settings=settings)
    assert receiver.store.get_head(chain.id) == chain.head
    min_s = pack_bytes(node, chain) / RATE - 1
    assert min_s > 1
    assert there.passed_s > min_s


# How many at once


@dataclass
class Crowd:
    """Counts who is there at the same time; everybody stays until as many as are awaited came, and a little longer."""

    awaited: int
    most: int = 0
    now: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now >= self.awaited:
            self.full.set()
        await self.full.wait()
        # For one too many to be seen; whoever comes later than this makes nothing fail.
        await asyncio.sleep(0.05)
        try:
            yield
        finally:
            self.now -= 1


@contextmanager
def exactly(awaited: int) -> Iterator[Crowd]:
    crowd = Crowd(awaited)
    yield crowd
    assert crowd.most == awaited


def crowded(node: TestNode, crowd: Crowd, is_object: Callable[[web.Request], bool]) -> web.Application:
    app = create_whole_app(node.served)

    @web.middleware
    async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_object(request):
            return await handler(request)
        async with crowd.enter():
            return await handler(request)

    app.middlewares.insert(0, watch)
    return app


def some_objects() -> Chain:
    chain = Chain("demo.data")
    for number in range(OBJECTS):
        chain.add(bytes([number]) * 100)
    return chain


@pytest.mark.parametrize("parallel", [1, 2, None], ids=["one", "two", "usual"])
@in_loop
async def test_pull_has_as_many_requests_at_once_as_were_asked_for(tmp_path: Path, parallel: int | None) -> None:
    node, mine, chain = TestNode.create(tmp_path / "a"), TestNode.create(tmp_path / "b"), some_objects()
    node.keep(chain)
    wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
    with exactly(parallel or 4) as crowd:
        async with (
            serving(crowded(node, crowd, lambda request: "/data/" in request.path)) as url,
            await open_peer(f"{url}/demo.data", ClientSettings(parallel=parallel)) as peer,
        ):
            with mine.objects.writing():
                await peer.fetch_objects(wanted, mine.objects)
    assert set(mine.objects.iter_hashes()) == set(chain.objects)


@pytest.mark.parametrize("parallel", [1, 2])
@in_loop
async def test_push_has_as_many_uploads_at_once_as_were_asked_for(tmp_path: Path, parallel: int) -> None:
    node, receiver, chain = TestNode.create(tmp_path / "a"), TestNode.create(tmp_path / "b"), some_objects()
    node.keep(chain)
    receiver.put_token()
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    with exactly(parallel) as crowd:
        async with serving(crowded(receiver, crowd, lambda request: request.method == "PUT")) as url:
            await push_dataset(
                f"{url}/demo.data",
                proposed,
                store=node.store,
                objects=node.objects,
                settings=ClientSettings(token=TOKEN, parallel=parallel),
            )
    assert receiver.store.get_head(chain.id) == chain.head


@in_loop
async def test_several_nodes_together_get_no_more_requests_at_once_than_were_asked_for(tmp_path: Path) -> None:
    chain = Chain("demo.data").add(random.Random(2).randbytes(5 * LEAF_BYTES))
    nodes, mine = [TestNode.create(tmp_path / name) for name in ("a", "b")], TestNode.create(tmp_path / "c")
    for node in nodes:
        node.keep(chain)
    wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
    with exactly(3) as crowd:
        apps = [crowded(node, crowd, lambda request: "Range" in request.headers) for node in nodes]
        async with serving(apps[0]) as one, serving(apps[1]) as other:
            urls = [f"{url}/demo.data" for url in (one, other)]
            async with await open_peers(urls, lambda _: ClientSettings(parallel=3), mine.home.staging) as peer:
                with mine.objects.writing():
                    await peer.fetch_objects(wanted, mine.objects)
    assert set(mine.objects.iter_hashes()) == set(chain.objects)


@in_loop
async def test_command_moves_as_much_at_once_as_it_was_told(tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=0)
    for number in range(OBJECTS):
        chain.add_rows([(f"city {number}", number)])
    files = {f"/cities/blocks/{block.hash}": block.raw for block in chain.blocks}
    files |= {f"/cities/data/{object_hash}": content for object_hash, content in chain.files.items()}
    files["/cities/refs/head"] = str(chain.head.hash).encode()
    with exactly(2) as crowd:

        async def answer(request: web.Request) -> web.StreamResponse:
            if "/data/" not in request.path:
                found = files.get(request.path)
                return web.Response(body=found) if found is not None else web.Response(status=404)
            async with crowd.enter():
                return web.Response(body=files[request.path])

        async with serving_files(answer) as http:
            pull = ("pull", f"{http.base}/cities", "--policy", "unsigned", "--parallel", "2")
            pulled = await asyncio.to_thread(RealNode(tmp_path / "node").run, *pull)
    assert pulled.code == 0, pulled.err


def test_option_wins_over_the_setting_which_holds_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_LIMITS_PARALLEL_TRANSFERS", "3")
    monkeypatch.setenv("ODF_NODE_LIMITS_FETCH_BYTES_PER_SECOND", "80000")
    with CommandContext(tmp_path, None) as context:
        found = []
        for named in ({}, {"parallel": 2}, {"rate": 0}):
            context.limit_transfers(**named)
            found.append((context.node.outgoing.parallel, context.node.rate.chunk_bytes))
    assert found == [(3, 10_000), (2, 10_000), (3, ByteRate().chunk_bytes)]
