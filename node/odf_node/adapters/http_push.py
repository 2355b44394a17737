"""Pushing a dataset to a node that speaks our exchange (EX-17 to EX-22)."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
from yarl import URL

from odf_node.adapters.exchange_peer import node_info_url, split_dataset_url
from odf_node.adapters.http_client import ClientSettings, HttpClient, read_bounded
from odf_node.adapters.http_failures import error_of_status
from odf_node.adapters.packing import iter_chunks, iter_packed
from odf_node.adapters.peer_protocols import find_protocol
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError, PushRejectedError
from odf_node.ports.pushes import PushedHead, PushOutcome, SentObjects
from odf_node.store import MetadataStore
from odf_node.threads import do_all, finish_in_thread
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.limits import MAX_JSON_BYTES, PUSH_WAIT_S
from odf_protocol.exchange.messages import (
    HeadMessage,
    MissingObject,
    NodeInfo,
    PushRequest,
    PushState,
    PushStatus,
    UploadProgress,
    decode_message,
    encode_message,
)
from odf_protocol.exchange.packs import PACK_MEDIA_TYPE, encode_pack
from odf_protocol.exchange.routes import pushes_path
from odf_protocol.head import Head

_JSON: Final = {"Content-Type": "application/json"}


async def push_dataset(
    address: str,
    proposed: PushedHead,
    *,
    store: MetadataStore,
    objects: SentObjects,
    settings: ClientSettings,
    on_bytes: OnBytes | None = None,
) -> PushOutcome:
    """Offer a dataset to another node and wait for its verdict.

    Args:
        address: ``http(s)://.../NAME``: the node, and what the dataset is to be called there; ``odf+http(s)://`` speaks
            ODF's Smart Transfer Protocol to those that know nothing better.
        proposed: The head up to which is pushed; in the store.
        store: What the home keeps.
        objects: Slices and checkpoints of this dataset.
        settings: With the token; ``message_s`` bounds single answers, not the receiver's verification.
        on_bytes: Told of object bytes that are sent, as ``PeerDataset.fetch_objects``.

    Raises:
        PushRejectedError: The receiver rejects, or has another history or a newer one.
        PeerForbidsError: No token, or one that does not allow it.
        PeerUnavailableError: The receiver does not answer, or could not judge.
        UnsupportedError: The address is not one of a node that takes pushes.
    """
    url = parse_peer_url(address)
    if not isinstance(url, URL):
        raise UnsupportedError("push to a folder", found=address, supported="http and https")
    async with HttpClient(settings) as client:
        # Without a token only the node's own name can open the door.
        info = await _find_node_info(client, url)
        protocol = find_protocol(address)
        if info is None and protocol is not None:
            return await protocol.push(client, url, proposed, store, objects, on_bytes)
        _require_pushes(url, info)
        client.sign_all(settings.token is None)
        failures = 0
        while True:
            push = _Push(client, url, proposed, store, objects, on_bytes)
            try:
                return await push.run()
            except PeerNotFoundError as error:
                # The receiver was started anew and forgot the push; what it received of objects is kept there.
                failures += 1
                if failures >= settings.attempts:
                    raise PeerUnavailableError(str(url), f"it forgets the push again and again: {error}") from error
                await client.back_off(failures)


@dataclass
class _Push:
    """One session at the receiver."""

    _client: HttpClient
    _url: URL
    _proposed: PushedHead
    _store: MetadataStore
    _objects: SentObjects
    _on_bytes: OnBytes | None
    _sent_bytes: int = 0

    def __post_init__(self) -> None:
        self._base, self._name = split_dataset_url(self._url)
        self._push_url = self._base / pushes_path()

    async def run(self) -> PushOutcome:
        state = await self._begin()
        known = None if state.known_head is None else state.known_head.to_head()
        if state.status is PushStatus.RECEIVING:
            await self._require_common_history(known)
            state = await self._send_blocks(state)
            await self._send_objects(state)
            state = await self._commit()
        self._judge(state)
        known_number = -1 if known is None else known.sequence_number
        return PushOutcome(
            url=str(self._url).rstrip("/"),
            known_head=known,
            sent_blocks=self._proposed.head.sequence_number - known_number,
            sent_bytes=self._sent_bytes,
        )

    async def _begin(self) -> PushState:
        request = PushRequest(
            dataset_id=str(self._proposed.dataset_id),
            name=self._name,
            head=HeadMessage.of(self._proposed.head),
            signed_head=self._proposed.signed_head,
            key_events=self._proposed.key_events or msgspec.UNSET,
        )
        body = encode_message(request)
        state = await self._client.retry(lambda: self._ask("POST", self._push_url, body, _JSON))
        self._push_url = self._base / pushes_path(state.push_id)
        return state

    async def _require_common_history(self, known: Head | None) -> None:
        if known is None:
            return
        block = await asyncio.to_thread(self._store.find_block, self._proposed.dataset_id, known.hash)
        if block is None or block.sequence_number > self._proposed.head.sequence_number:
            await self._client.ask("DELETE", self._push_url)
            raise PushRejectedError(
                str(self._url),
                "EX-19 blocks-in-order",
                f"it has block {known.sequence_number} ({known.hash.short}), which is not in the history here: "
                "either it is ahead (pull first), or the histories have parted",
            )

    async def _send_blocks(self, state: PushState) -> PushState:
        head, proposed = self._proposed.head, self._proposed
        while state.received_upto < head.sequence_number:
            after = state.received_upto
            body, _ = await finish_in_thread(
                lambda after=after: encode_pack(  # type: ignore[misc]
                    iter_packed(
                        self._store,
                        proposed.dataset_id,
                        after,
                        head.sequence_number,
                        with_records=proposed.with_records,
                    )
                )
            )
            state = await self._client.retry(lambda after=after, body=body: self._send_pack(after, body))  # type: ignore[misc]
            if state.received_upto <= after:
                raise PeerLiedError(str(self._url), "EX-19 blocks-in-order", expected=f"more than {after}", found=after)
        return state

    async def _send_pack(self, after: int, body: bytes) -> PushState:
        url = (self._push_url / "blocks").with_query(after=after)
        try:
            return await self._ask("POST", url, body, {"Content-Type": PACK_MEDIA_TYPE})
        except PeerUnavailableError:
            # The blocks may have arrived and only the answer been lost.
            state = await self._ask("GET", self._push_url)
            if state.received_upto > after:
                return state
            raise

    async def _send_objects(self, state: PushState) -> None:
        while state.missing:
            await do_all(self._send_object, state.missing, at_once=self._client.settings.objects_at_once)
            before = state.missing_count
            state = await self._client.retry(lambda: self._ask("GET", self._push_url))
            if state.missing_count >= before:
                raise PeerLiedError(
                    str(self._url), "EX-20 objects", expected=f"fewer than {before} missing", found=state.missing_count
                )

    async def _send_object(self, item: MissingObject) -> None:
        url = self._push_url / "objects" / item.object_hash
        failures, best = 0, 0
        while True:
            try:
                position = await self._find_position(url)
                if position > best:
                    failures, best = 0, position
                if position < item.size_bytes or item.size_bytes == 0:
                    await self._put(url, item, position)
            except PeerUnavailableError:
                failures += 1
                if failures >= self._client.settings.attempts:
                    raise
            else:
                return
            await self._client.back_off(failures)

    async def _find_position(self, url: URL) -> int:
        answer = await self._client.ask("GET", url)
        if answer.status != HTTPStatus.OK:
            raise error_of_status(str(url), answer.status, "object", answer.body, answer.content_type)
        return decode_message(answer.body, UploadProgress).position

    async def _put(self, url: URL, item: MissingObject, position: int) -> None:
        size_bytes = await asyncio.to_thread(self._objects.get_size, item.to_hash())
        if size_bytes != item.size_bytes:
            raise PushRejectedError(
                str(url), "EX-12 object-size", f"expected {item.size_bytes} bytes, found {size_bytes} here"
            )
        headers = {"Content-Length": str(size_bytes - position), "Content-Type": "application/octet-stream"}
        rate = self._client.settings.rate
        data = iter_chunks(self._objects, item.to_hash(), rate, self._report, start=position, end=size_bytes)
        put = url.with_query(position=position)
        async with self._client.open("PUT", put, headers=headers, data=data) as answer:
            body = await read_bounded(answer, MAX_JSON_BYTES)
            if answer.status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
                raise error_of_status(str(url), answer.status, "object", body, answer.content_type)

    def _report(self, sent_bytes: int) -> None:
        self._sent_bytes += sent_bytes
        if self._on_bytes is not None:
            self._on_bytes(sent_bytes)

    async def _commit(self) -> PushState:
        async def attempt() -> PushState:
            state = await self._ask("GET", self._push_url)
            if state.status is PushStatus.RECEIVING:
                state = await self._ask("POST", self._push_url / "commit", b"")
            while state.status is PushStatus.VERIFYING:
                state = await self._ask("GET", self._push_url.with_query(wait_s=int(PUSH_WAIT_S)))
            return state

        return await self._client.retry(attempt)

    def _judge(self, state: PushState) -> None:
        problem = state.problem
        detail = "" if problem is None else problem.detail or problem.title
        if state.status is PushStatus.REJECTED:
            raise PushRejectedError(
                str(self._url),
                "" if problem is None else problem.rule,
                detail,
                sequence_number=None if problem is None else problem.sequence_number,
                report=None if problem is None else problem.report,
            )
        if state.status is not PushStatus.ACCEPTED:
            raise PeerUnavailableError(str(self._url), f"it could not judge the push: {detail or state.status.value}")

    async def _ask(
        self, method: str, url: URL, data: bytes | None = None, headers: dict[str, str] | None = None
    ) -> PushState:
        answer = await self._client.ask(method, url, data=data, headers=headers)
        if answer.status not in {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED}:
            raise error_of_status(str(url), answer.status, "push", answer.body, answer.content_type)
        return decode_message(answer.body, PushState)


async def _find_node_info(client: HttpClient, url: URL) -> NodeInfo | None:
    answer = await client.ask("GET", node_info_url(url))
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise error_of_status(str(url), answer.status, "push", answer.body, answer.content_type)
    try:
        return decode_message(answer.body, NodeInfo) if answer.status == HTTPStatus.OK else None
    except MalformedError:
        return None


def _require_pushes(url: URL, info: NodeInfo | None) -> None:
    if info is None:
        supported = f"nodes that speak our exchange; odf+{url} would speak ODF's Smart Transfer Protocol"
        raise UnsupportedError(f"push to {url}", found="a server of another kind", supported=supported)
    if not info.takes_pushes:
        supported = "nodes that take pushes"
        raise UnsupportedError(f"push to {url}", found="a node that takes no pushes", supported=supported)
