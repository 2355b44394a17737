"""Carries gossip over HTTP to addresses that other nodes name: no redirects, nothing private, little time, few bytes.

The host of an address is judged before anything is resolved, and every address that a name resolves to is judged
before it is connected to, in the resolver of the very connection: what was judged is what is used.
"""

import asyncio
from typing import Final, Self

import aiohttp
from aiohttp.abc import AbstractResolver

from odf_gossip_protocol.messages import MAX_MESSAGE_BYTES, Reply, Request, decode_reply, encode_gossip
from odf_node import __version__
from odf_node.adapters.http_client import read_bounded
from odf_node.adapters.http_failures import error_of_status, mapped_failures
from odf_node.adapters.public_resolver import PublicResolver
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.exchange.routes import gossip_path
from odf_protocol.peer_addresses import PeerAddress

ANSWER_S: Final = 8.0  # guess: four rounds; a peer that needs longer is of little use as one
CONNECTIONS: Final = 32  # guess: all links, and as many again


class GossipClient:
    """``GossipTransport`` over HTTP; an asynchronous context manager."""

    def __init__(self, *, allow_private: bool, answer_s: float = ANSWER_S) -> None:
        self._allow_private = allow_private
        self._answer_s = answer_s
        self._named: aiohttp.ClientSession | None = None
        self._unknown: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._named = _open_session(None)
        self._unknown = _open_session(None if self._allow_private else PublicResolver())
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close all connections."""
        for session in (self._named, self._unknown):
            if session is not None:
                await session.close()

    async def ask(self, address: PeerAddress, request: Request, *, is_named: bool) -> Reply:
        """See ``GossipTransport``."""
        if not (is_named or self._allow_private or address.is_public):
            raise RejectedError("GOSSIP-9 address-is-public", found=address)
        session = self._named if is_named else self._unknown
        assert session is not None
        url = f"{address}/{gossip_path()}"
        with mapped_failures(url):
            async with (
                asyncio.timeout(self._answer_s),
                session.post(
                    url,
                    data=encode_gossip(request),
                    headers={"Content-Type": "application/json"},
                    allow_redirects=False,
                ) as answer,
            ):
                if answer.status != 200:
                    raise error_of_status(url, answer.status, "gossip reply")
                if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                    raise MalformedError("answer", where=url, expected="no Content-Encoding", found="one")
                return decode_reply(await read_bounded(answer, MAX_MESSAGE_BYTES))


def _open_session(resolver: AbstractResolver | None) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS, limit_per_host=4, resolver=resolver),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": f"odf-node/{__version__}", "Accept-Encoding": "identity"},
        auto_decompress=False,
        trust_env=False,
    )
