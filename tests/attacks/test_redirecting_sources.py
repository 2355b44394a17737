"""Servers that a manifest names as a source and that send this node into its own network: ING-22.

What a source gives becomes rows that others may read: a service that only this machine can reach would be published.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from odf_node.adapters.public_resolver import OneWayResolver
from odf_node.ports.sources import Fetched, SourceRejectedError, UpToDate
from odf_node.sources.contract import FetchContext, SourceSettings
from odf_node.sources.limits import SourceLimits
from odf_node.sources.url import fetch_url
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.events import FetchStepUrl
from odf_protocol.timestamp import Timestamp
from support.http_server import Server, serving

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
LIMITS = SourceLimits(connect_s=60, read_s=60, total_s=200)
PUBLIC = ("127.0.0.1", "93.184.215.14")
"""A host in the public internet, as far as its name server says; what answers first is the test's own server."""
NAMES = {"public.example": PUBLIC, "other.example": PUBLIC, "inside.example": ("127.0.0.1",), "six.example": ("::1",)}


class Names(AbstractResolver):
    """Name servers of the table; numbers mean the loopback, as resolvers of the C library read them."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        found = NAMES.get(host, ("127.0.0.1",))
        return [ResolveResult(hostname=host, host=address, port=port, family=2, proto=0, flags=0) for address in found]

    async def close(self) -> None:
        """Nothing is held."""


def fetch(folder: Path, first: str, *targets: str) -> tuple[Fetched | UpToDate | OdfError, Server]:
    """Fetch from a host that redirects along ``targets``; where the last one is reached, its secret is fetched."""

    async def run() -> tuple[Fetched | UpToDate | OdfError, Server]:
        async def answer(request: web.Request) -> web.StreamResponse:
            hop = int(request.path.strip("/") or 0)
            if hop == len(targets):
                return web.Response(text="secret of the inside")
            port = URL(server.base).port
            raise web.HTTPFound(f"http://{targets[hop]}:{port}/{hop + 1}")

        async with serving(answer) as server:
            step = FetchStepUrl(url=f"http://{first}:{URL(server.base).port}/0")
            context = FetchContext(None, NOW, folder, SourceSettings(limits=LIMITS))
            try:
                return await fetch_url(step, context, resolver=OneWayResolver(Names())), server
            except OdfError as refused:
                return refused, server

    return asyncio.run(run())


@pytest.mark.parametrize(
    "targets",
    [
        ("127.0.0.1",),
        ("[::1]",),
        ("[::ffff:127.0.0.1]",),
        ("[::ffff:7f00:1]",),
        ("169.254.169.254",),
        ("10.0.0.1",),
        ("0.0.0.0",),
        ("2130706433",),
        ("0x7f.1",),
        ("localhost",),
        ("inside.example",),
        ("INSIDE.example.",),
        ("six.example",),
    ],
    ids="-".join,
)
def test_redirect_from_the_public_internet_into_this_network_fetches_nothing(
    tmp_path: Path, targets: tuple[str, ...]
) -> None:
    found, server = fetch(tmp_path, "public.example", *targets)
    if targets == ("2130706433",):
        assert isinstance(found, MalformedError)  # the HTTP library takes it for no host at all
    else:
        assert isinstance(found, SourceRejectedError), found
        assert found.rule == "redirect-target"
    assert [request.path for request in server.requests] == ["/0"]
    assert list(tmp_path.iterdir()) == []


def test_network_that_was_left_is_not_entered_again(tmp_path: Path) -> None:
    found, server = fetch(tmp_path, "inside.example", "public.example", "inside.example")
    assert isinstance(found, SourceRejectedError)
    assert [request.path for request in server.requests] == ["/0", "/1"]


@pytest.mark.parametrize("first", ["inside.example", "127.0.0.1", "localhost"])
def test_source_in_ones_own_network_redirects_inside_it(tmp_path: Path, first: str) -> None:
    found, _ = fetch(tmp_path, first, "inside.example", "127.0.0.1")
    assert isinstance(found, Fetched)
    assert found.path.read_text() == "secret of the inside"
