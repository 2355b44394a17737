"""Requests that the node signs, so that a peer knows who asks (EX-50)."""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Final, Self

import aiohttp
from yarl import URL

from odf_node import __version__
from odf_node.adapters.public_resolver import SteadyResolver
from odf_node.ports.clock import Clock
from odf_node.ports.keys import KeyStore, PrivateKey
from odf_node.ports.notices import Told
from odf_protocol.did import DidKey
from odf_protocol.exchange.limits import MAX_HEADER_FIELD_BYTES, MAX_REQUEST_LINE_BYTES
from odf_protocol.http_signatures import (
    CONTENT_DIGEST,
    REQUIRED,
    content_digest,
    encode_fields,
    encode_parameters,
    signature_base,
)

_NONCE_BYTES = 12  # guess: no two among all requests of a few minutes


class NodeSigner:
    """Signs with the node's key; each call makes a new nonce."""

    def __init__(self, key: PrivateKey, clock: Clock) -> None:
        self._key = key
        self._clock = clock
        self._key_id = str(DidKey(key.public_key()))

    def __call__(self, method: str, url: URL, fields: Mapping[str, str]) -> Mapping[str, str]:
        """Return the fields that sign the request."""
        digest = next((value for name, value in fields.items() if name.lower() == CONTENT_DIGEST), None)
        values = {
            "@method": method,
            "@authority": (url.host_port_subcomponent or "").lower(),
            "@path": url.raw_path or "/",
            "@query": f"?{url.raw_query_string}",
        }
        components: tuple[str, ...] = REQUIRED
        if digest is not None:
            values[CONTENT_DIGEST] = digest
            components = (*REQUIRED, CONTENT_DIGEST)
        parameters = encode_parameters(
            components,
            key_id=self._key_id,
            created_s=self._clock.now().seconds,
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
        )
        base = signature_base(values, components, parameters)
        return encode_fields(parameters, self._key.sign(base))


_WHOLE_S: Final = 10.0  # guess: a receiver puts it into a queue and answers
_COMES_LATER: Final = frozenset({408, 425, 429})
"""Statuses of 4xx that may be others later."""


class NoticeSender:
    """Sends notices; one for all receivers, on one event loop."""

    def __init__(self, signer: NodeSigner) -> None:
        self._signer = signer
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=SteadyResolver()),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=_WHOLE_S),
            headers={"User-Agent": f"odf-node/{__version__}", "Accept-Encoding": "identity"},
            auto_decompress=False,
            max_line_size=MAX_REQUEST_LINE_BYTES,
            max_field_size=MAX_HEADER_FIELD_BYTES,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def send(self, url: str, body: bytes) -> tuple[Told, str]:
        """See ``NoticeSending``."""
        assert self._session is not None
        target = URL(url)
        fields = {"Content-Type": "application/json", "Content-Digest": content_digest(body)}
        signed = self._signer("POST", target, {CONTENT_DIGEST: fields["Content-Digest"]})
        try:
            async with self._session.post(
                target, data=body, headers={**fields, **signed}, allow_redirects=False
            ) as answer:
                status = answer.status
        except aiohttp.InvalidURL:
            return Told.REJECTED, "no address that can be asked"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Told.UNAVAILABLE, type(error).__name__
        if 200 <= status < 300:
            return Told.DONE, f"status {status}"
        if 300 <= status < 400:
            return Told.REJECTED, f"status {status}: redirects are not followed"
        if status < 500 and status not in _COMES_LATER:
            return Told.REJECTED, f"status {status}"
        return Told.UNAVAILABLE, f"status {status}"


class SignedPosts:
    """Signs with the node's key, which is made where there is none."""

    def __init__(self, keys: KeyStore, clock: Clock) -> None:
        self._keys, self._clock = keys, clock

    @property
    def node_id(self) -> str:
        return str(DidKey(self._keys.get_or_create_node_key().public_key()))

    def send(self, url: str, body: bytes) -> tuple[Told, str]:
        return asyncio.run(self._send(url, body))

    async def _send(self, url: str, body: bytes) -> tuple[Told, str]:
        async with NoticeSender(NodeSigner(self._keys.get_or_create_node_key(), self._clock)) as sender:
            return await sender.send(url, body)
