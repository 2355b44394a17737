"""Addresses that a stranger names and that lead into this network: rejected before anything is sent there.

Each address is rejected by the one judgement (GOSSIP-9), as the address of a transfer (SMART-11), and behind a name.
"""

import socket
from ipaddress import ip_address
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.public_resolver import PublicResolver, SteadyResolver
from odf_node.ports.peer_errors import PeerLiedError, PeerUnavailableError
from odf_protocol.errors import OdfError
from odf_protocol.public_addresses import is_public_host, is_public_ip
from odf_smart.transfer_urls import read_transfer_url
from odf_smart_protocol.messages import Header, TransferUrl
from support.event_loop import in_loop
from support.http_server import serving

DATASET = URL("http://node.example/demo/")

INSIDE = {
    "this-network": "0.0.0.0",
    "this-network-too": "0.1.2.3",
    "private-10": "10.0.0.1",
    "private-172": "172.31.255.255",
    "private-192": "192.168.1.1",
    "shared": "100.64.0.1",
    "shared-to-its-end": "100.127.255.255",
    "loopback": "127.0.0.1",
    "metadata": "169.254.169.254",
    "protocol-assignments": "192.0.0.8",
    "documentation-1": "192.0.2.1",
    "documentation-2": "198.51.100.1",
    "documentation-3": "203.0.113.1",
    "given-up-relays": "192.88.99.1",
    "benchmarks": "198.19.0.1",
    "multicast": "224.0.0.1",
    "multicast-of-an-organisation": "239.1.1.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "v6-nothing": "::",
    "v6-loopback": "::1",
    "v6-mapped": "::ffff:127.0.0.1",
    "v6-compatible": "::10.0.0.1",
    "v6-compatible-public": "::8.8.8.8",
    "v6-translated": "::ffff:0:10.0.0.1",
    "v6-nat64": "64:ff9b::10.0.0.1",
    "v6-nat64-metadata": "64:ff9b::a9fe:a9fe",
    "v6-nat64-local": "64:ff9b:1::1",
    "v6-nat64-local-public": "64:ff9b:1::8.8.8.8",
    "v6-6to4": "2002:7f00:1::",
    "v6-6to4-private": "2002:a00:1::1",
    "v6-teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "v6-site-local": "fec0::1",
    "v6-site-local-to-its-end": "feff::1",
    "v6-link-local": "fe80::1",
    "v6-unique-local": "fd00::1",
    "v6-multicast": "ff02::1",
    "v6-discard": "100::1",
    "v6-documentation": "2001:db8::1",
    "v6-documentation-new": "3fff::1",
    "v6-segment-routing": "5f00::1",
    "v6-benchmarks": "2001:2::1",
}
OUTSIDE = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "100.128.0.1"]


class LyingNames(AbstractResolver):
    """A name server that answers each question as it was told, the last answer for ever."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        now = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=found,
                port=port,
                family=socket.AF_INET6 if ":" in found else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for found in now
        ]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE)
def test_address_inside_is_not_public(address: str) -> None:
    assert not is_public_ip(ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_address_outside_is_public(address: str) -> None:
    assert is_public_ip(ip_address(address))


def test_address_with_a_zone_is_judged_and_a_name_is_not() -> None:
    assert is_public_host("fe80::1%eth0") is False
    assert is_public_host("node.example") is None


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE)
def test_transfer_to_an_address_inside_is_rejected(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(PeerLiedError, match="SMART-11"):
        read_transfer_url(TransferUrl(url=f"http://{host}/x", headers=()), dataset_url=DATASET)


@pytest.mark.parametrize(
    ("place", "headers"),
    [
        ("a", {"X": "a\r\nEvil: 1"}),
        ("a", {"X\r\nEvil: 1\r\nY": "a"}),
        ("a", {"X": "a\0b"}),
        ("a", {"X": "\u20ac"}),
        ("a", {"": "a"}),
        ("a", {"a:b": "a"}),
        ("a", {"transfer-encoding ": "chunked"}),
        ("a", {"\tHost": "elsewhere"}),
        ("a\r\nEvil: 1", {}),
        ("a HTTP/1.1\tx", {}),
        ("a HTTP/1.1 x", {}),
        ("\x00\x01", {}),
        ("\u2028", {}),
    ],
)
@in_loop
async def test_transfer_whose_words_would_be_a_message_of_their_own_is_rejected(
    place: str, headers: dict[str, str]
) -> None:
    async def inside(request: web.Request) -> web.Response:
        return web.Response()

    async with serving(inside) as victim:
        stated = tuple(Header(name=name, value=value) for name, value in headers.items())
        with pytest.raises(PeerLiedError, match="SMART-11") as refused:
            read_transfer_url(TransferUrl(url=f"{victim.base}/{place}", headers=stated), dataset_url=URL(victim.base))
        assert str(refused.value).isprintable()
        assert victim.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1:70000", "xn--\u2603.example", "[::1", "127.0.0.1:x", "node.example:-1"])
def test_address_that_is_none_is_rejected(host: str) -> None:
    with pytest.raises(PeerLiedError, match="SMART-11"):
        read_transfer_url(TransferUrl(url=f"http://{host}/x", headers=()), dataset_url=DATASET)


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE)
@in_loop
async def test_name_that_leads_inside_is_resolved_to_nothing(address: str) -> None:
    resolver = PublicResolver("node.example", system=LyingNames((address,)))
    with pytest.raises(OSError, match="not in the public internet"):
        await resolver.resolve("liar.example", 80)


@in_loop
async def test_only_the_public_addresses_of_a_name_are_left() -> None:
    resolver = PublicResolver(system=LyingNames((*INSIDE.values(), "8.8.8.8")))
    assert [found["host"] for found in await resolver.resolve("liar.example", 80)] == ["8.8.8.8"]


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
@in_loop
async def test_number_that_resolvers_take_for_loopback_reaches_nobody(host: str) -> None:
    async def inside(request: web.Request) -> web.Response:
        return web.Response()

    async with serving(inside) as victim:
        port = URL(victim.base).port
        found = TransferUrl(url=f"http://{host}:{port}/x", headers=())
        settings = ClientSettings(attempts=1)
        async with HttpClient(settings, resolver=PublicResolver(DATASET.host)) as client:
            url, _ = read_transfer_url(found, dataset_url=DATASET)
            with pytest.raises(OdfError):
                await client.ask("GET", url)
        assert victim.requests == []
        async with aiohttp.ClientSession() as others, others.get(victim.base) as answer:
            assert answer.status == 200


@in_loop
async def test_host_that_moves_into_this_network_while_it_is_spoken_to_reaches_nobody() -> None:
    """DNS rebinding: the name that the user typed was public, and then it is the loopback."""

    async def inside(request: web.Request) -> web.Response:
        return web.Response()

    async with serving(inside) as victim:
        port = URL(victim.base).port
        steady = SteadyResolver(LyingNames(("93.184.215.14",), ("127.0.0.1",)))
        assert [found["host"] for found in await steady.resolve("typed.example", 80)] == ["93.184.215.14"]
        # Requests that follow, to the node and to where it says that objects are.
        for resolver in (steady, PublicResolver("typed.example", steady)):
            async with HttpClient(ClientSettings(attempts=1), resolver=resolver) as client:
                with pytest.raises(PeerUnavailableError):
                    await client.ask("GET", URL(f"http://typed.example:{port}/admin"))
        assert victim.requests == []


@in_loop
async def test_host_of_ones_own_network_is_used_as_typed() -> None:
    async def inside(request: web.Request) -> web.Response:
        return web.Response(text="here")

    async with serving(inside) as server:
        port = URL(server.base).port
        names: Any = LyingNames(("127.0.0.1",))
        async with HttpClient(ClientSettings(attempts=1), resolver=SteadyResolver(names)) as client:
            assert (await client.ask("GET", URL(f"http://typed.example:{port}/"))).body == b"here"
