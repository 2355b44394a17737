"""Objects from HTTP into the store: resumed, bounded by what the block says, hashed on the way (EX-12, EX-13)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from typing import Final

import aiohttp
from yarl import URL

from odf_node.adapters.http_client import HttpClient, read_bounded
from odf_node.adapters.http_failures import error_of_status
from odf_node.adapters.staged_stream import StagedStream
from odf_node.ports.objects import LARGE_BYTES, ArrivingObjects, StagedObject
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.peer_errors import PeerLiedError, PeerPreparesError, PeerUnavailableError
from odf_node.records.errors import ObjectMismatchError
from odf_node.threads import do_all, finish_in_thread
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import KIB, MIN_RATE_BYTES_PER_S, RATE_WINDOW_S
from odf_protocol.exchange.object_parts import find_content_range
from odf_protocol.multihash import SHA3_256

_MAX_ERROR_BODY_BYTES: Final = 64 * KIB


class ObjectDownloads:
    """Fetches objects of one dataset, ``parallel`` at once.

    A large one begins when half of the large one before it is here. So they end one after another, and the rows of one
    are read while the next ones arrive (ROWS-7); begun together, they would end together.
    """

    def __init__(
        self,
        client: HttpClient,
        locate: Callable[[WantedObject], URL],
        headers_of: Callable[[WantedObject], Mapping[str, str]] = lambda _: {},
    ) -> None:
        """Make it from a client that is open, where each object is, and what has to be said there."""
        self._client = client
        self._locate = locate
        self._headers_of = headers_of

    async def fetch(self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None) -> None:
        """Bring all of them into the store; see ``PeerDataset.fetch_objects``."""
        # Two blocks may name equal bytes; two downloads of one object would fight for its staged file.
        distinct = {item.hash: item for item in wanted}.values()
        large = [item for item in distinct if item.size_bytes >= LARGE_BYTES]
        half_here = {item.hash: asyncio.Event() for item in large}
        before = {item.hash: half_here[earlier.hash] for earlier, item in pairwise(large)}

        async def fetch_one(item: WantedObject) -> None:
            if item.hash in before:
                await before[item.hash].wait()
            url, headers = self._locate(item), self._headers_of(item)
            half = half_here.get(item.hash)
            await _ObjectDownload(self._client, url, headers, item, objects, on_bytes, half).run()

        # Small ones first: what waits for a large one waits for one that has begun.
        small_first = sorted(distinct, key=lambda item: item.hash in half_here)
        await do_all(fetch_one, small_first, at_once=self._client.settings.objects_at_once)


_ASK_SELDOM: Final = 10
"""As many failures as make a client wait its longest."""


@dataclass(slots=True)
class _ObjectDownload:
    """One object, through as many attempts as bring something."""

    _client: HttpClient
    _url: URL
    _headers: Mapping[str, str]
    _item: WantedObject
    _objects: ArrivingObjects
    _on_bytes: OnBytes | None
    _half_here: asyncio.Event | None
    """Set when half of it is here, where another one waits for that."""
    _reported_bytes: int = 0
    _best_bytes: int = 0
    _kept_before: int | None = None
    """Bytes of an earlier process that were gone on from: they may be to blame when the hash is wrong."""

    async def run(self) -> None:
        if self._item.hash.code != SHA3_256:
            raise PeerLiedError(str(self._url), "EX-12 object-hash", expected="a SHA3-256", found=self._item.hash)
        if await asyncio.to_thread(self._objects.has, self._item.hash):
            self._report(self._item.size_bytes)
            return
        failures = 0
        loop = asyncio.get_running_loop()
        patient_until = loop.time() + self._client.settings.prepare_s
        while True:
            best = self._best_bytes
            try:
                if await self._attempt():
                    return
                continue
            except PeerPreparesError:
                if loop.time() >= patient_until:
                    raise
                failures = _ASK_SELDOM
            except PeerUnavailableError:
                # Only more than ever before is progress: a peer could send the same beginning for ever.
                failures = 0 if self._best_bytes > best else failures + 1
                if failures >= self._client.settings.attempts:
                    raise
            await self._client.back_off(failures)

    async def _attempt(self) -> bool:
        staged = await finish_in_thread(lambda: self._objects.resume(self._item.hash))
        with staged:
            if self._kept_before is None:
                self._kept_before = staged.size_bytes
            if staged.size_bytes > self._item.size_bytes:
                await finish_in_thread(staged.restart)
            self._report(staged.size_bytes)
            if staged.size_bytes < self._item.size_bytes or self._item.size_bytes == 0:
                await self._download(staged)
            return await self._put(staged)

    async def _put(self, staged: StagedObject) -> bool:
        try:
            await finish_in_thread(lambda: self._objects.put(staged, self._item.hash))
        except ObjectMismatchError as error:
            if self._kept_before:
                # The bytes of this session may all be right; only a download of our own from the start can tell.
                self._kept_before = 0
                return False
            self._report(0)
            raise PeerLiedError(
                str(self._url), "EX-12 object-hash", expected=self._item.hash, found=error.found
            ) from error
        return True

    async def _download(self, staged: StagedObject) -> None:
        start = staged.size_bytes
        headers = {**self._headers, "Range": f"bytes={start}-"} if start else self._headers
        async with self._client.open("GET", self._url, headers=headers) as answer:
            if start and answer.status in {HTTPStatus.OK, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
                # It ignores ranges (200), or has fewer bytes than we hold (416): begin again.
                await finish_in_thread(staged.restart)
                self._report(0)
                if answer.status != HTTPStatus.OK:
                    raise PeerUnavailableError(str(self._url), "it has fewer bytes than arrived before")
            elif answer.status == HTTPStatus.PARTIAL_CONTENT and start:
                self._check_part(answer, start)
            elif answer.status != HTTPStatus.OK:
                body = await read_bounded(answer, _MAX_ERROR_BODY_BYTES)
                raise error_of_status(str(self._url), answer.status, "object", body, answer.content_type)
            left_bytes = self._item.size_bytes - staged.size_bytes
            if answer.content_length not in {None, left_bytes}:
                raise self._wrong_size(staged.size_bytes + (answer.content_length or 0))
            await self._receive(answer, staged)
        if staged.size_bytes < self._item.size_bytes:
            if answer.headers.get("Transfer-Encoding", "").lower() == "chunked":
                raise self._wrong_size(staged.size_bytes)  # it said itself that this is the end
            raise PeerUnavailableError(str(self._url), "the connection was cut", "try again; what arrived is kept")

    async def _receive(self, answer: aiohttp.ClientResponse, staged: StagedObject) -> None:
        async with StagedStream(staged) as stream:
            await self._copy(answer.content, stream, staged.size_bytes)
            await stream.finish()

    async def _copy(self, body: aiohttp.StreamReader, stream: StagedStream, position: int) -> None:
        rate = self._client.settings.rate
        loop = asyncio.get_running_loop()
        window_end, window_bytes = loop.time() + RATE_WINDOW_S, 0
        while True:
            paused_at = loop.time()
            await rate.wait()
            # What we hold back is not the peer's slowness.
            window_end += loop.time() - paused_at
            if not (data := await (body.read(rate.chunk_bytes) if rate.is_limited else body.readany())):
                break
            rate.take(len(data))
            position += len(data)
            if position > self._item.size_bytes:
                raise self._wrong_size("more")
            await stream.write(data)
            self._report(position)
            window_bytes += len(data)
            if loop.time() >= window_end:
                if window_bytes < MIN_RATE_BYTES_PER_S * RATE_WINDOW_S:
                    raise PeerUnavailableError(str(self._url), f"it sends {window_bytes} bytes in {RATE_WINDOW_S} s")
                window_end, window_bytes = loop.time() + RATE_WINDOW_S, 0

    def _check_part(self, answer: aiohttp.ClientResponse, start: int) -> None:
        part = find_content_range(answer.headers.get("Content-Range"))
        if part is None or part.start != start:
            raise PeerLiedError(
                str(self._url),
                "EX-6 range",
                expected=f"bytes from {start}",
                found=answer.headers.get("Content-Range"),
            )
        if part.size_bytes not in {None, self._item.size_bytes}:
            raise self._wrong_size(part.size_bytes)

    def _wrong_size(self, found: object) -> PeerLiedError:
        return PeerLiedError(
            str(self._url), "EX-12 object-size", expected=f"{self._item.size_bytes} bytes", found=found
        )

    def _report(self, position: int) -> None:
        if self._on_bytes is not None and position != self._reported_bytes:
            self._on_bytes(position - self._reported_bytes)
        self._reported_bytes = position
        self._best_bytes = max(self._best_bytes, position)
        if self._half_here is not None and 2 * position >= self._item.size_bytes:
            self._half_here.set()
