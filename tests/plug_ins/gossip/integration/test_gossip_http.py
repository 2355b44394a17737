"""Gossip over HTTP: the route and its limits, and a client that strangers cannot send anywhere (GOSSIP-49 to 51)."""

import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestClient as LoopbackClient
from aiohttp.test_utils import TestServer as LoopbackServer

from odf_gossip.client import GossipClient
from odf_gossip_protocol import GossipMachine, GossipSettings, encode_gossip
from odf_gossip_protocol import messages as gossip_messages
from odf_gossip_protocol.messages import MAX_MESSAGE_BYTES, Follow, Taken
from odf_node.adapters.public_resolver import PublicResolver
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.peer_addresses import PeerAddress
from support.event_loop import in_loop
from support.exchange_nodes import TestNode
from support.http_server import serving, serving_bytes
from support.whole_app import create_whole_app

ROOT = Path(__file__).parents[4]
SCHEMAS = yaml.safe_load((ROOT / "spec/schemas/openapi.yaml").read_text())["components"]["schemas"]
NAMES = {"ItemMessage": "Item", "IdRange": "Range"}
MESSAGES = [
    name
    for name, found in vars(gossip_messages).items()
    if isinstance(found, type(msgspec.Struct)) and not name.startswith("_")
]
ROUTE = "/_odf/v1/gossip"
JSON = {"Content-Type": "application/json"}


class Echo:
    """A receiver that answers what a test wants."""

    def __init__(self, reply: bytes | None) -> None:
        self.reply = reply
        self.asked: list[tuple[str, bytes]] = []

    def receive(self, bucket: str, body: bytes) -> bytes | None:
        self.asked.append((bucket, body))
        if body == b"{}":
            raise MalformedError("gossip request")
        return self.reply


def client_of(tmp_path: Path, gossip: Echo | None) -> LoopbackClient[web.Request, web.Application]:
    served = TestNode.create(tmp_path / "home").served
    return LoopbackClient(LoopbackServer(create_whole_app(served, gossip)))


@in_loop
async def test_route_hands_on_the_message_and_the_network_it_came_from(tmp_path: Path) -> None:
    echo = Echo(b'{"type":"taken"}')
    async with client_of(tmp_path, echo) as client:
        answer = await client.post(ROUTE, data=b"hello", headers=JSON)
        assert (answer.status, answer.content_type, await answer.read()) == (200, "application/json", echo.reply)
    assert echo.asked == [("127.0.0.1", b"hello")]


@in_loop
async def test_route_says_what_is_wrong(tmp_path: Path) -> None:
    async with client_of(tmp_path, Echo(None)) as client:
        refused = await client.post(ROUTE, data=b"x", headers=JSON)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
        assert (await client.post(ROUTE, data=b"{}", headers=JSON)).status == 400
        assert (await client.post(ROUTE, data=bytes(MAX_MESSAGE_BYTES + 1), headers=JSON)).status == 400
        assert (await client.get(ROUTE)).status == 405
    async with client_of(tmp_path / "mute", None) as client:
        assert (await client.post(ROUTE, data=b"x", headers=JSON)).status == 404


@in_loop
async def test_message_without_length_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    async def endless() -> Any:
        for _ in range(MAX_MESSAGE_BYTES // 65_536 + 2):
            yield bytes(65_536)

    echo = Echo(b"")
    async with client_of(tmp_path, echo) as client:
        assert (await client.post(ROUTE, data=endless(), headers=JSON)).status == 400
    assert echo.asked == []


@in_loop
async def test_client_asks_and_reads_the_reply() -> None:
    async def answer(request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("POST", ROUTE)
        assert "Authorization" not in request.headers
        return web.Response(body=encode_gossip(Taken()))

    async with serving(answer) as server, GossipClient(allow_private=False) as client:
        assert await client.ask(PeerAddress(server.base), Follow(), is_named=True) == Taken()


@in_loop
async def test_private_address_that_a_peer_named_is_not_connected_to() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=encode_gossip(Taken()))

    async with serving(answer) as server:
        async with GossipClient(allow_private=False) as client:
            with pytest.raises(RejectedError, match="GOSSIP-9"):
                await client.ask(PeerAddress(server.base), Follow(), is_named=False)
            with pytest.raises(RejectedError, match="GOSSIP-9"):
                await client.ask(PeerAddress(server.base.replace("127.0.0.1", "localhost")), Follow(), is_named=False)
        assert server.requests == []
        async with GossipClient(allow_private=True) as client:
            assert await client.ask(PeerAddress(server.base), Follow(), is_named=False) == Taken()


@in_loop
async def test_redirect_is_not_followed() -> None:
    async def inside(request: web.Request) -> web.Response:
        return web.Response(body=encode_gossip(Taken()))

    async with serving(inside) as victim:

        async def answer(request: web.Request) -> web.Response:
            raise web.HTTPTemporaryRedirect(f"{victim.base}{ROUTE}")

        async with serving(answer) as server, GossipClient(allow_private=True) as client:
            with pytest.raises(OdfError):
                await client.ask(PeerAddress(server.base), Follow(), is_named=True)
        assert victim.requests == []


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n" + bytes(600_000),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
        b"not HTTP at all\r\n\r\n",
        b"",
    ],
    ids=["too-long", "compressed", "no-reply", "failure", "noise", "nothing"],
)
def test_what_is_no_reply_is_an_error_of_the_peer(reply: bytes) -> None:
    @in_loop
    async def run() -> None:
        async with serving_bytes(reply) as base, GossipClient(allow_private=True) as client:
            with pytest.raises(OdfError):
                await client.ask(PeerAddress(base), Follow(), is_named=False)

    run()


@in_loop
async def test_peer_that_does_not_answer_is_given_up() -> None:
    async with serving_bytes(b"", then_close=False) as base, GossipClient(allow_private=True, answer_s=0.2) as client:
        with pytest.raises(PeerUnavailableError):
            await client.ask(PeerAddress(base), Follow(), is_named=False)


class Names(AbstractResolver):
    """A name server of a liar."""

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=found, port=port, family=socket.AF_INET, proto=0, flags=0)
            for found in self.hosts
        ]

    async def close(self) -> None:
        pass


@in_loop
async def test_name_leads_to_public_addresses_only() -> None:
    names = Names("127.0.0.1", "8.8.8.8", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1")
    resolver = PublicResolver(system=names)
    assert [one["host"] for one in await resolver.resolve("liar.example", 80)] == ["8.8.8.8"]
    names.hosts = ("127.0.0.1", "::1")
    with pytest.raises(OSError, match="not in the public internet"):
        await resolver.resolve("liar.example", 80)


@pytest.mark.parametrize("name", MESSAGES)
def test_message_has_the_described_fields(name: str) -> None:
    message = getattr(gossip_messages, name)
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(message)}
    tag = message.__struct_config__.tag_field
    if tag is not None:
        fields[tag] = True
    schema = SCHEMAS[NAMES.get(name, name)]
    assert set(schema["properties"]) == set(fields)
    assert set(schema.get("required", [])) == {field for field, required in fields.items() if required}
    assert (schema.get("additionalProperties") is False) == message.__struct_config__.forbid_unknown_fields
    if tag is not None:
        assert schema["properties"][tag] == {"const": message.__struct_config__.tag}


def test_numbers_in_the_clauses_are_those_of_the_code() -> None:
    clauses = (ROOT / "spec/plug-ins/gossip.md").read_text()
    stated = GossipSettings()
    for text in (
        f"at most {stated.max_items:,} items and {stated.max_item_bytes // 2**20} MiB",
        f"at most {stated.max_forgotten:,}, and not asked for again",
        f"at most {stated.signer_items:,} of one key",
        f"tried {stated.tried_peers}, fresh {stated.new_peers}",
        f"at most {stated.bucket_peers} places in either table",
        f"one introducer has at most {stated.introduced_peers} places",
        f"at most 16 items and {stated.push_bytes // 1024} KiB",
        f"{stated.outbox_items} items wait at most",
        f"the last {stated.max_log:,} arrivals",
        f"follows {stated.feed_peers} of its links each round",
        f"{stated.rate_requests_per_s:g} requests a second, {stated.rate_burst_requests:g} at once",
        f"push {stated.rate_items_per_s:g} new items a second, {stated.rate_burst_items:g} at once",
        f"up to {stated.out_links} links *out*",
        f"at most {stated.in_links} and {2 * stated.bucket_links} of one bucket",
        f"not asked for again for {stated.link_rounds} rounds",
        f"Every {stated.hello_rounds} rounds the link that waited longest",
        f"every {stated.probe_rounds} rounds another peer",
        f"every {stated.rotate_rounds} rounds one link out",
        f"Every {stated.reconcile_rounds} rounds a node reconciles",
        f"A round is {stated.round_ms // 1000} seconds",
        f"dated more than {stated.future_ms // 60_000} minutes ahead",
        f"after {stated.max_strikes} of them the bucket is rejected for {stated.ban_ms // 60_000} minutes",
        f"at most {stated.max_backoff_rounds}; a fresh one is forgotten after {stated.fresh_failures} failures",
        f"`want`, at most {stated.want_items} ids",
        f"at most {stated.session_steps} requests",
    ):
        assert text in clauses, text
    assert stated.push_items == 16
    assert isinstance(GossipMachine(stated).store.ids.between(bytes(32), None), list)
