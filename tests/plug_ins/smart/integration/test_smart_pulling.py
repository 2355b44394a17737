"""Our client and our server of Smart Transfer pulls, over real sockets (SMART-1, SMART-7, SMART-8)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.configuration import Configuration, Listen
from odf_node.http.served_node import Live
from odf_node.ports.peer_client import PeerSpeaks
from odf_node.ports.peer_errors import PeerForbidsError, PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_smart.peer import SmartPeer
from odf_smart_protocol import batches
from odf_smart_protocol.batches import encode_batch
from odf_smart_protocol.messages import BlocksBatch, BlocksResponse, encode_message
from support.event_loop import in_loop
from support.exchange_nodes import Chain, TestNode, read_kamu_chain, serving

QUICK = ClientSettings(attempts=1, backoff_s=0.01)
VERSION = {"x-odf-smtp-version": "1"}


def demo_chain(length: int = 3) -> Chain:
    chain = Chain("demo.data")
    for number in range(length):
        chain.add(b"slice %d" % number, b"state %d" % number)
    return chain


@asynccontextmanager
async def smart_peer(address: str, settings: ClientSettings = QUICK) -> AsyncIterator[SmartPeer]:
    client = HttpClient(settings)
    await client.__aenter__()
    async with SmartPeer(client, URL(f"{address}/demo.data/")) as peer:
        yield peer


def wanted_of(chain: Chain) -> list[WantedObject]:
    return [item for block in chain.blocks for item in iter_wanted(block.event)]


async def read_blocks(peer: SmartPeer, after: Head | None = None) -> list[bytes]:
    head = await peer.get_head()
    return [block.raw async for block in peer.iter_blocks(after=after, upto=head.head)]


def raw_of(chain: Chain, first: int = 0) -> list[bytes]:
    return [block.raw for block in chain.blocks[first:]]


@in_loop
async def test_whole_dataset_is_cloned(tmp_path: Path) -> None:
    node, mine, chain = TestNode.create(tmp_path / "home"), TestNode.create(tmp_path / "mine"), demo_chain()
    node.keep(chain)
    async with node.serving() as url, smart_peer(url) as peer:
        assert peer.description.speaks is PeerSpeaks.SMART
        assert (await peer.get_head()).head == chain.head
        assert await read_blocks(peer) == raw_of(chain)
        arrived: list[int] = []
        with mine.objects.writing():
            await peer.fetch_objects(wanted_of(chain), mine.objects, arrived.append)
        assert {hash_: mine.objects.get_path(hash_).read_bytes() for hash_ in chain.objects} == chain.objects
        assert sum(arrived) == sum(len(data) for data in chain.objects.values())


@in_loop
async def test_only_what_is_new_is_fetched(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "home"), demo_chain()
    node.keep(chain)
    known = Head(1, chain.blocks[1].hash)
    async with node.serving() as url, smart_peer(url) as peer:
        assert await read_blocks(peer, known) == raw_of(chain, 2)
        assert await read_blocks(peer, chain.head) == []


@in_loop
async def test_dataset_of_a_seed_alone_is_pulled(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("demo.data"))
    async with node.serving() as url, smart_peer(url) as peer:
        assert await read_blocks(peer) == raw_of(Chain("demo.data"))


@in_loop
async def test_chain_of_several_batches_is_pulled_in_several_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_BLOCKS", 3)
    node, chain = TestNode.create(tmp_path / "home"), demo_chain(7)
    node.keep(chain)
    async with node.serving() as url, smart_peer(url) as peer:
        assert await read_blocks(peer) == raw_of(chain)
        assert await read_blocks(peer, Head(0, chain.blocks[0].hash)) == raw_of(chain, 1)


@in_loop
async def test_other_history_is_given_from_where_it_may_differ(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "home"), demo_chain()
    node.keep(chain)
    ours = Chain("demo.data").add(b"another slice")
    async with node.serving() as url, smart_peer(url) as peer:
        assert await read_blocks(peer, ours.head) == raw_of(chain, 2)


@in_loop
async def test_chain_that_grew_meanwhile_is_cut_at_the_head_that_was_asked_for(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "home"), demo_chain()
    node.keep(chain)
    async with node.serving() as url, smart_peer(url) as peer:
        upto = Head(1, chain.blocks[1].hash)
        assert [block.raw async for block in peer.iter_blocks(after=None, upto=upto)] == raw_of(chain)[:2]


@in_loop
async def test_unpublished_and_absent_datasets_look_the_same(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    async with node.serving() as url, smart_peer(url) as peer:
        with pytest.raises(PeerNotFoundError) as absent:
            await peer.get_head()
        node.keep(demo_chain(), published=False)
        with pytest.raises(PeerNotFoundError) as unpublished:
            await peer.get_head()
        assert str(absent.value) == str(unpublished.value)
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{url}/demo.data/pull", headers=VERSION)
            assert refused.value.status == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 400), ({"x-odf-smtp-version": "2"}, 400), (VERSION, 426)],
    ids=["no-version", "another-version", "no-upgrade"],
)
@in_loop
async def test_request_that_cannot_begin_a_conversation_is_answered(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(demo_chain())
    async with (
        node.serving() as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/demo.data/pull", headers=headers) as answer,
    ):
        assert answer.status == status


@in_loop
async def test_object_of_another_dataset_is_not_given(tmp_path: Path) -> None:
    node, chain, other = TestNode.create(tmp_path / "home"), demo_chain(), Chain("private").add(b"secret")
    node.keep(chain)
    node.keep(other, published=False)
    async with node.serving() as url, smart_peer(url) as peer:
        await read_blocks(peer)
        with pytest.raises(OdfError, match="1011"), node.objects.writing():
            await peer.fetch_objects(wanted_of(other), TestNode.create(tmp_path / "mine").objects)


@in_loop
async def test_conversation_that_broke_is_taken_up_for_the_objects(tmp_path: Path) -> None:
    node, mine, chain = TestNode.create(tmp_path / "home"), TestNode.create(tmp_path / "mine"), demo_chain()
    node.keep(chain)
    async with node.serving() as url, smart_peer(url) as peer:
        await read_blocks(peer)
        assert peer._pull is not None
        await peer._pull.close()
        peer._pull.is_over = True
        with mine.objects.writing():
            await peer.fetch_objects(wanted_of(chain), mine.objects)
        assert all(mine.objects.has(hash_) for hash_ in chain.objects)


@in_loop
async def test_stop_at_is_honoured_and_the_plan_is_of_what_is_sent(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "home"), demo_chain()
    node.keep(chain)
    async with (
        node.serving() as url,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/demo.data/pull", headers=VERSION) as socket,
    ):
        stop = str(chain.blocks[1].hash)
        await socket.send_str(json.dumps({"begin_after": None, "stop_at": stop, "force_update_if_diverged": False}))
        plan = (await socket.receive_json())["Ok"]["transfer_plan"]
        slice_and_state = len(b"slice 0" + b"state 0")
        assert plan == {
            "num_blocks": 2,
            "num_objects": 2,
            "num_records": 1,
            "bytes_in_raw_blocks": sum(map(len, raw_of(chain)[:2])),
            "bytes_in_raw_objects": slice_and_state,
        }


@pytest.mark.parametrize("public", [None, "https://data.example"], ids=["as-asked", "behind-a-proxy"])
@in_loop
async def test_address_and_token_of_the_conversation_are_given_for_the_objects(
    tmp_path: Path, public: str | None
) -> None:
    node, chain = TestNode.create(tmp_path / "home"), demo_chain(1)
    node.keep(chain)
    async with (
        node.serving(live=Live(Configuration(listen=Listen(public_url=public)))) as url,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/demo.data/pull", headers={**VERSION, "Authorization": "Bearer t"}) as socket,
    ):
        await socket.send_str('{"begin_after":null,"stop_at":null,"force_update_if_diverged":false}')
        await socket.receive()
        await socket.send_str("{}")
        await socket.receive()
        item = {"object_type": "DataSlice", "physical_hash": str(Multihash.of_sha3_256(b"slice 0")), "size": 7}
        await socket.send_str(json.dumps({"object_files": [item]}))
        (strategy,) = (await socket.receive_json())["object_transfer_strategies"]
        assert strategy["object_file"] == item
        assert strategy["download_from"] == {
            "url": f"{public or url}/demo.data/data/{item['physical_hash']}",
            "headers": [
                {"name": "x-odf-smtp-version", "value": "1"},
                {"name": "authorization", "value": "Bearer t"},
            ],
            "expires_at": None,
        }


@in_loop
async def test_conversations_end_when_the_node_stops(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(demo_chain())
    async with aiohttp.ClientSession() as session:
        async with node.serving() as url:
            socket = await session.ws_connect(f"{url}/demo.data/pull", headers=VERSION)
            answered = asyncio.create_task(socket.receive())
        assert (await answered).data == 1001


# Servers that do otherwise

Answer = Callable[[web.WebSocketResponse, Any], Any]


@asynccontextmanager
async def strange_server(chain: Chain, *answers: str | bytes | None) -> AsyncIterator[str]:
    """Answers each message of a pull with the next of these texts; None: by closing."""
    app = web.Application()

    async def head(_: web.Request) -> web.Response:
        return web.Response(text=str(chain.head.hash))

    async def block(_: web.Request) -> web.Response:
        return web.Response(body=chain.blocks[-1].raw)

    async def pull(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for answer in answers:
            await socket.receive()
            if answer is None:
                break
            await (socket.send_bytes(answer) if isinstance(answer, bytes) else socket.send_str(answer))
        else:
            await socket.receive()
        await socket.close()
        return socket

    from odf_node.http.served_node import LIVE, Live

    app[LIVE] = Live()
    app.router.add_get("/demo.data/refs/head", head)
    app.router.add_get("/demo.data/blocks/{hash}", block)
    app.router.add_get("/demo.data/pull", pull)
    async with serving(app) as url:
        yield url


def plan(blocks: int) -> str:
    zeros = dict.fromkeys(("num_objects", "num_records", "bytes_in_raw_blocks", "bytes_in_raw_objects"), 0)
    return json.dumps({"Ok": {"transfer_plan": {"num_blocks": blocks, **zeros}}})


def batch(pairs: list[tuple[Multihash, bytes]]) -> str:
    payload, count = encode_batch(pairs)
    return encode_message(BlocksResponse(blocks=BlocksBatch.of(payload, count))).decode()


def pairs_of(chain: Chain) -> list[tuple[Multihash, bytes]]:
    return [(block.hash, block.raw) for block in chain.blocks]


CHAIN = demo_chain()
SHORT = Chain("demo.data").add(b"slice 0", b"state 0")


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        pytest.param([b"binary"], MalformedError, id="binary"),
        pytest.param(["no json"], MalformedError, id="no-json"),
        pytest.param([None], PeerUnavailableError, id="closes-at-once"),
        pytest.param([plan(0)], PeerLiedError, id="nothing-where-there-must-be-something"),
        pytest.param([plan(2**31)], UnsupportedError, id="endless-plan"),
        pytest.param([plan(4), None], PeerUnavailableError, id="closes-instead-of-blocks"),
        pytest.param([plan(4), batch([(CHAIN.head.hash, raw) for _, raw in pairs_of(CHAIN)])], MalformedError,
                     id="blocks-under-other-names"),
        pytest.param([plan(4), batch(pairs_of(Chain("demo.data").add(b"x").add(b"y").add(b"z")))], PeerLiedError,
                     id="another-chain"),
    ],
)  # fmt: skip
@in_loop
async def test_server_that_says_something_else_is_not_believed(answers: list[Any], error: type[OdfError]) -> None:
    async with strange_server(CHAIN, *answers) as url, smart_peer(url) as peer:
        with pytest.raises(error):
            await read_blocks(peer)


@in_loop
async def test_server_that_rejects_is_quoted() -> None:
    text = '{"Err":{"Internal":{"phase":{"Pull":"InitialRequest"},"error_message":"Internal error"}}}'
    async with strange_server(CHAIN, text) as url, smart_peer(url) as peer:
        with pytest.raises(PeerUnavailableError, match="Internal error"):
            await read_blocks(peer)


@in_loop
async def test_address_in_another_network_is_not_followed(tmp_path: Path) -> None:
    item = wanted_of(CHAIN)[0]
    strategy = {
        "object_file": {"object_type": "DataSlice", "physical_hash": str(item.hash), "size": item.size_bytes},
        "pull_strategy": "HttpDownload",
        "download_from": {"url": "http://10.0.0.1/latest/meta-data", "headers": [], "expires_at": None},
    }
    places = json.dumps({"object_transfer_strategies": [strategy]})
    async with (
        strange_server(CHAIN, plan(4), batch(pairs_of(CHAIN)), places) as url,
        smart_peer(url) as peer,
    ):
        await read_blocks(peer)
        with pytest.raises(PeerLiedError, match="SMART-11"):
            await peer.fetch_objects([item], TestNode.create(tmp_path / "mine").objects)


@in_loop
async def test_redirect_of_a_conversation_is_not_followed() -> None:
    app = web.Application()

    async def away(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:9/demo.data/pull")

    async def head(_: web.Request) -> web.Response:
        return web.Response(text=str(CHAIN.head.hash))

    from odf_node.http.served_node import LIVE, Live

    app[LIVE] = Live()
    app.router.add_get("/demo.data/refs/head", head)
    app.router.add_get("/demo.data/pull", away)
    async with serving(app) as url, smart_peer(url) as peer:
        with pytest.raises(UnsupportedError, match="redirect"):
            await peer.get_head()


@pytest.mark.parametrize(
    ("status", "error"), [(401, PeerForbidsError), (403, PeerForbidsError), (404, PeerNotFoundError)]
)
@in_loop
async def test_rejection_before_the_conversation_is_told(status: int, error: type[OdfError]) -> None:
    app = web.Application()

    async def reject(request: web.Request) -> web.Response:
        return web.Response(status=status)

    async def head(_: web.Request) -> web.Response:
        return web.Response(text=str(CHAIN.head.hash))

    async def block(_: web.Request) -> web.Response:
        return web.Response(body=CHAIN.blocks[-1].raw)

    from odf_node.http.served_node import LIVE, Live

    app[LIVE] = Live()
    app.router.add_get("/demo.data/refs/head", head)
    app.router.add_get("/demo.data/blocks/{hash}", block)
    app.router.add_get("/demo.data/pull", reject)
    async with serving(app) as url, smart_peer(url) as peer:
        with pytest.raises(error):
            await read_blocks(peer)


@in_loop
async def test_chain_of_another_implementation_is_served_as_it_is(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "home"), read_kamu_chain("ledger.transactions")
    node.keep(Chain("demo.data", chain.blocks, chain.objects))
    async with node.serving() as url, smart_peer(url) as peer:
        assert await read_blocks(peer) == raw_of(chain)
