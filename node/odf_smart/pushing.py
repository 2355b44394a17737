"""Pushing a dataset to a server of ODF's Smart Transfer Protocol (SMART-9)."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from yarl import URL

from odf_node.adapters.http_client import HttpClient, read_bounded
from odf_node.adapters.http_failures import error_of_status, mapped_failures
from odf_node.adapters.packing import iter_chunks
from odf_node.adapters.plain_peer import parse_head_text
from odf_node.adapters.public_resolver import PublicResolver
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError, PushRejectedError
from odf_node.ports.pushes import PushedHead, PushOutcome, SentObjects
from odf_node.store import MetadataStore
from odf_node.threads import do_all, finish_in_thread
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.limits import KIB, MAX_HEAD_TEXT_BYTES
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_smart.batches import PlannedBatch, plan_batch
from odf_smart.conversations import Conversation, name_peer, open_conversation
from odf_smart.transfer_urls import read_transfer_url
from odf_smart_protocol.conversation import ConversationFailed, Ended, Opened, Rejected
from odf_smart_protocol.messages import PushStrategy, SmartPushRequest
from odf_smart_protocol.push_client import PushClient, Upload, Uploaded, UploadsDone

_MAX_ANSWER_BYTES: Final = 64 * KIB


@dataclass
class SmartPush:
    """One push, in as many conversations as its blocks need."""

    _client: HttpClient
    _url: URL
    _proposed: PushedHead
    _store: MetadataStore
    _objects: SentObjects
    _on_bytes: OnBytes | None
    _sent_bytes: int = 0

    async def run(self) -> PushOutcome:
        """Bring the other side up to the offered head.

        Raises:
            PushRejectedError: It has another history, or says no.
            PeerForbidsError, PeerUnavailableError, PeerLiedError, MalformedError: As it answers.
        """
        found = await self._find_head()
        known, is_forced = await self._find_common(found)
        first, last = known, known
        while last != self._proposed.head:
            after = -1 if last is None else last.sequence_number
            planned = await finish_in_thread(
                lambda after=after: plan_batch(  # type: ignore[misc]
                    self._store, self._proposed.dataset_id, after=after, upto=self._proposed.head.sequence_number
                )
            )
            await self._converse(planned, current=found, is_forced=is_forced)
            # The confirmation looks like a question about progress: only the head that is there tells.
            found = await self._client.retry(self._find_head)
            if found != planned.head.hash:
                raise PeerUnavailableError(str(self._url), f"its head is {found}, not the one that was pushed")
            last, is_forced = planned.head, False
        known_number = -1 if first is None else first.sequence_number
        return PushOutcome(
            url=str(self._url).rstrip("/"),
            known_head=first,
            sent_blocks=self._proposed.head.sequence_number - known_number,
            sent_bytes=self._sent_bytes,
            is_verified=False,
        )

    async def _find_head(self) -> Multihash | None:
        try:
            text = await self._client.get_bytes(self._url / "refs/head", "dataset", limit_bytes=MAX_HEAD_TEXT_BYTES)
        except PeerNotFoundError:
            return None
        return parse_head_text(text, str(self._url))

    async def _find_common(self, found: Multihash | None) -> tuple[Head | None, bool]:
        """Give the block from which on the other side lacks ours, and whether its history is to be replaced."""
        if found is None:
            return None, False
        block = await asyncio.to_thread(self._store.find_block, self._proposed.dataset_id, found)
        if block is not None and block.sequence_number <= self._proposed.head.sequence_number:
            return Head(block.sequence_number, found), False
        if self._proposed.replaces_history:
            return None, True
        raise PushRejectedError(
            str(self._url),
            "SMART-9 common-history",
            f"its head {found.short} is not in the history here: either it is ahead (pull first), or the histories "
            "have parted; --force replaces its history, if it allows that",
        )

    async def _converse(self, planned: PlannedBatch, *, current: Multihash | None, is_forced: bool) -> None:
        request = SmartPushRequest(
            current_head=None if current is None else str(current),
            transfer_plan=planned.plan,
            force_update_if_diverged=is_forced,
            visibility_for_created_dataset="Public" if self._proposed.is_public else "Private",
        )
        with mapped_failures(str(self._url)):
            async with AsyncExitStack() as stack:
                role = PushClient(request, planned.batch, planned.objects)
                conversation = await open_conversation(stack, self._client, self._url / "push", role)
                effects = await conversation.tell(Opened())
                while not any(isinstance(effect, Ended) for effect in effects):
                    effects = await self._go_on(conversation, effects) or await conversation.listen()

    async def _go_on(self, conversation: Conversation, effects: Sequence[Any]) -> list[Any]:
        for effect in effects:
            match effect:
                case Rejected(problem):
                    raise PushRejectedError(str(self._url), "SMART-9 receiver-agrees", problem.explain())
                case ConversationFailed(error):
                    raise self._name(error)
                case Upload(strategies):
                    return await self._upload(conversation, strategies)
        return []

    def _name(self, error: Any) -> Exception:
        if isinstance(error, RejectedError) and error.rule.startswith("SMART-9"):
            return PushRejectedError(str(self._url), error.rule, str(error.found))
        return name_peer(self._url, error)

    async def _upload(self, conversation: Conversation, strategies: Sequence[PushStrategy]) -> list[Any]:
        """Upload, and meanwhile answer how far that is."""
        uploading = asyncio.create_task(self._put_all(conversation, strategies))
        try:
            while (effects := await conversation.listen_beside(uploading)) is not None:
                if effects:  # the conversation has ended
                    return effects
            await uploading
        finally:
            uploading.cancel()
            await asyncio.wait([uploading])
        return await conversation.tell(UploadsDone())

    async def _put_all(self, conversation: Conversation, strategies: Sequence[PushStrategy]) -> None:
        settings = replace(self._client.settings, token=None)  # addresses bring their own
        done = 0
        resolver = PublicResolver(self._url.host, self._client.resolver)
        async with HttpClient(settings, resolver=resolver) as transfers:

            async def put(item: PushStrategy) -> None:
                nonlocal done
                await self._put(transfers, item)
                done += 1
                await conversation.tell(Uploaded(done))

            await do_all(put, strategies, at_once=settings.objects_at_once)

    async def _put(self, transfers: HttpClient, item: PushStrategy) -> None:
        assert item.upload_to is not None
        url, headers = read_transfer_url(item.upload_to, dataset_url=self._url)
        size_bytes = await asyncio.to_thread(self._objects.get_size, item.object_file.hash)
        if size_bytes != item.object_file.size:
            raise PeerLiedError(str(self._url), "SMART-9 object-size", expected=item.object_file.size, found=size_bytes)
        own = {"Content-Type": "application/octet-stream", "Content-Length": str(size_bytes)}
        rate = self._client.settings.rate
        data = iter_chunks(self._objects, item.object_file.hash, rate, self._report, end=size_bytes)
        async with transfers.open("PUT", url, headers={**headers, **own}, data=data) as answer:
            body = await read_bounded(answer, _MAX_ANSWER_BYTES)
            if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                raise error_of_status(str(url), answer.status, "object", body, answer.content_type)

    def _report(self, sent_bytes: int) -> None:
        self._sent_bytes += sent_bytes
        if self._on_bytes is not None:
            self._on_bytes(sent_bytes)
