"""Sends a notice to a receiver that the operator named: one signed POST, no redirect, and little of the answer is read.

Source: clauses NOTICE-3 and NOTICE-4 in ``spec/notices.md``; EX-50 and EX-52 in ``spec/extensions/exchange.md``.
"""

from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from odf_node import __version__
from odf_node.adapters.public_resolver import SteadyResolver
from odf_node.adapters.request_signing import NodeSigner
from odf_node.ports.notices import Told
from odf_protocol.exchange.limits import MAX_HEADER_FIELD_BYTES, MAX_REQUEST_LINE_BYTES
from odf_protocol.http_signatures import CONTENT_DIGEST, content_digest

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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
            return Told.REFUSED, "no address that can be asked"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Told.UNAVAILABLE, type(error).__name__
        if 200 <= status < 300:
            return Told.DONE, f"status {status}"
        if 300 <= status < 400:
            return Told.REFUSED, f"status {status}: redirects are not followed"
        if status < 500 and status not in _COMES_LATER:
            return Told.REFUSED, f"status {status}"
        return Told.UNAVAILABLE, f"status {status}"
