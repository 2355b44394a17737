"""Strangers who hold connections, requests and conversations: others are served meanwhile (EX-73, SMART-13)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from odf_node.configuration import Configuration, LimitSettings
from odf_node.http import listening
from odf_node.http.access_log import share_of
from odf_node.http.encryption import make_tls_context
from odf_node.http.listening import CONNECTIONS, listen
from odf_node.http.served_node import Live
from odf_node.http.server import make_runner
from odf_smart import served_sockets
from support.daemons import make_certificate
from support.event_loop import in_loop
from support.exchange_nodes import Chain, TestNode
from support.raw_http import connected, request_of, send_raw, status_of
from support.turned_clock import put_loop_ahead
from support.whole_app import create_whole_app

HEAD = "/demo.data/refs/head"
STRANGER = "127.0.0.66"
SOCKET = {"x-odf-smtp-version": "1"}


def make_node(tmp_path: Path) -> TestNode:
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("demo.data").add(b"rows"))
    return node


async def is_served(url: str, source: str = "127.0.0.1") -> bool:
    return status_of(await send_raw(url, request_of("GET", HEAD), source=source)) == 200


@asynccontextmanager
async def conversing(url: str, source: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(source, 0))) as session,
        session.ws_connect(f"{url}/demo.data/pull", headers=SOCKET) as socket,
    ):
        yield socket


@in_loop
async def test_six_hundred_connections_of_one_address_leave_room_for_others(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    async with node.serving() as url, AsyncExitStack() as held:
        opened = []
        for _ in range(600):
            with suppress(ConnectionError):
                opened.append(await held.enter_async_context(connected(url, source=STRANGER)))
        for _, writer in opened:
            with suppress(ConnectionError):
                writer.write(b"G")
        began_s = time.monotonic()
        assert await is_served(url)
        assert time.monotonic() - began_s < 5
    assert len(node.store.list_datasets()) == 1


@in_loop
async def test_connection_that_only_waits_gives_place_to_the_next_of_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(Configuration(limits=LimitSettings(address_connections=3)))
    async with make_node(tmp_path).serving(live=live) as url, AsyncExitStack() as held:
        opened = [await held.enter_async_context(connected(url, source=STRANGER)) for _ in range(3)]
        for _, writer in opened:
            writer.write(b"GET / HT")
        assert not await is_served(url, STRANGER)  # all are young, and may be about to ask
        assert await is_served(url)
        put_loop_ahead(monkeypatch, listening.GIVES_PLACE_S)
        assert await is_served(url, STRANGER)
        assert await opened[0][0].read(1) == b""


@in_loop
async def test_head_of_a_request_that_never_ends_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with make_node(tmp_path).serving() as url, connected(url, source=STRANGER) as (reader, writer):
        some_came = asyncio.Event()

        async def drip() -> None:
            with suppress(ConnectionError):
                for number, byte in enumerate(request_of("GET", HEAD, headers={"X-Long": "a" * 1000})):
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.1)
                    if number == 2:
                        some_came.set()

        dripping = asyncio.create_task(drip())
        await some_came.wait()
        put_loop_ahead(monkeypatch, listening.FIRST_REQUEST_S)
        with suppress(ConnectionResetError):  # where a byte came behind the end
            async with asyncio.timeout(20):
                assert await reader.read() == b""
        dripping.cancel()
        assert await is_served(url)


@in_loop
async def test_connection_with_a_request_under_way_does_not_give_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "GIVES_PLACE_S", 0.0)
    live = Live(Configuration(limits=LimitSettings(address_connections=1)))
    async with make_node(tmp_path).serving(live=live) as url, conversing(url, STRANGER) as socket:
        assert not await is_served(url, STRANGER)
        await socket.send_str('{"type":"x"}')
        assert (await socket.receive()).type is not aiohttp.WSMsgType.CLOSED
        assert await is_served(url)


@in_loop
async def test_requests_of_one_address_leave_room_for_others(tmp_path: Path) -> None:
    live = Live(Configuration(limits=LimitSettings(requests=4, address_requests=2)))
    async with make_node(tmp_path).serving(live=live) as url, AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(conversing(url, STRANGER))
        assert status_of(await send_raw(url, request_of("GET", HEAD), source=STRANGER)) == 503
        assert await is_served(url)
        for _ in range(2):
            await held.enter_async_context(conversing(url, "127.0.0.67"))
        assert not await is_served(url)


@in_loop
async def test_silent_conversations_are_bounded_by_address_and_end_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_node(tmp_path).serving() as url, AsyncExitStack() as held:
        sockets = [await held.enter_async_context(conversing(url, STRANGER)) for _ in range(8)]
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await held.enter_async_context(conversing(url, STRANGER))
        async with conversing(url, "127.0.0.1") as other:
            assert not other.closed
        put_loop_ahead(monkeypatch, served_sockets.FIRST_MESSAGE_S)
        async with asyncio.timeout(20):
            for socket in sockets:
                while not socket.closed:
                    await socket.receive()
        async with conversing(url, STRANGER) as again:
            assert not again.closed


@in_loop
async def test_handshakes_that_never_end_count_and_others_are_served(tmp_path: Path) -> None:
    """What the event loop's own server does not see: connections before their encryption."""
    tls = make_tls_context(*make_certificate(tmp_path))
    live = Live(Configuration(limits=LimitSettings(connections=8, address_connections=4)))
    runner = make_runner(create_whole_app(make_node(tmp_path).served, live=live), grace_s=1)
    await runner.setup()
    listener = await listen(runner, "127.0.0.1", 0, connections=runner.app[CONNECTIONS], tls=tls)
    url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        async with AsyncExitStack() as held:
            for _ in range(4):
                await held.enter_async_context(connected(url, source=STRANGER))
            async with connected(url, source=STRANGER) as (reader, _), asyncio.timeout(5):
                assert await reader.read(1) == b""
            async with aiohttp.ClientSession() as session, session.get(url + HEAD, ssl=False) as answer:
                assert answer.status == 200
    finally:
        listener.close()
        await runner.cleanup()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        (None, "nonsense", True),
    ],
)
def test_addresses_that_one_owner_has_share_a_limit(one: str | None, other: str, same: bool) -> None:
    assert (share_of(one) == share_of(other)) is same
