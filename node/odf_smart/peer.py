"""A dataset at a server of ODF's Smart Transfer Protocol (SMART-7)."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.http_failures import mapped_failures
from odf_node.adapters.object_downloads import ObjectDownloads
from odf_node.adapters.plain_peer import parse_head_text
from odf_node.adapters.public_resolver import PublicResolver
from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead, PeerSpeaks, SilentPeer
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_node.threads import finish_in_thread
from odf_protocol.block import decode_block
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import MAX_HEAD_TEXT_BYTES, MAX_PULL_BLOCKS, MAX_PULL_BYTES
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.exchange.routes import block_path
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES
from odf_smart.conversations import Conversation, name_peer, object_file_of, open_conversation
from odf_smart.transfer_urls import read_transfer_url
from odf_smart_protocol.batches import decode_batch
from odf_smart_protocol.conversation import ConversationFailed, Opened, Rejected
from odf_smart_protocol.limits import MAX_OBJECTS_PER_MESSAGE
from odf_smart_protocol.messages import BlocksBatch, TransferPlan
from odf_smart_protocol.problems import TransferProblem
from odf_smart_protocol.pull_client import (
    BlocksArrived,
    FetchBlocks,
    Finish,
    Locate,
    Located,
    Planned,
    PullClient,
)


class SmartPeer(SilentPeer):
    """``PeerDataset`` over the Smart Transfer Protocol: one conversation for blocks and the addresses of objects."""

    def __init__(self, client: HttpClient, url: URL) -> None:
        """Make it from an open client, which it closes, and the dataset's address with a trailing slash."""
        self._client = client
        self._url = url
        self._pull: _Pull | None = None
        self._begun_after: Multihash | None = None

    @property
    def description(self) -> PeerDescription:
        """See ``PeerDataset``."""
        return PeerDescription(url=str(self._url).rstrip("/"), speaks=PeerSpeaks.SMART)

    async def get_head(self) -> PeerHead:
        """See ``PeerDataset``; the number is the peer's word, which the blocks will prove or not."""
        text = await self._client.get_bytes(self._url / "refs/head", "dataset", limit_bytes=MAX_HEAD_TEXT_BYTES)
        head_hash = parse_head_text(text, str(self._url))
        number = await self._find_number(head_hash)
        if number is None:
            plan = await self._begin(None)
            number = plan.num_blocks - 1 if isinstance(plan, TransferPlan) else -1
        if number < 0:
            raise PeerLiedError(str(self._url), "SMART-7 a-dataset-has-blocks", expected="a plan", found="none")
        return PeerHead(head=Head(number, head_hash), name=self._url.with_path(self._url.path.rstrip("/")).name)

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """See ``PeerDataset``; one conversation for as many blocks as the peer puts into one."""
        last, skipped = after, -1
        left_bytes = MAX_PULL_BYTES
        while last is None or last.sequence_number < upto.sequence_number:
            plan = await self._begin(None if last is None else last.hash)
            if isinstance(plan, TransferProblem) and last is after and after is not None and plan.invalid_interval:
                # It knows nothing of the block that we have: histories differ. The caller wants to see where.
                last, skipped = None, after.sequence_number
                plan = await self._begin(None)
            if isinstance(plan, TransferProblem):
                raise PeerUnavailableError(str(self._url), f"it gives no blocks: {plan.explain()}")
            if plan.num_blocks > MAX_PULL_BLOCKS or plan.bytes_in_raw_blocks > MAX_PULL_BYTES:
                raise UnsupportedError(
                    f"length of the chain at {self._url}", found=plan.num_blocks, supported=f"{MAX_PULL_BLOCKS} blocks"
                )
            if not plan.num_blocks:
                raise PeerLiedError(str(self._url), "SMART-7 head-is-reached", expected=upto, found=last)
            for block_hash, raw in await self._fetch_batch():
                left_bytes -= len(raw)
                if left_bytes < 0:
                    raise UnsupportedError(
                        f"chain at {self._url}", found="more", supported=f"{MAX_PULL_BYTES} bytes of blocks at once"
                    )
                last = Head(0 if last is None else last.sequence_number + 1, block_hash)
                if last.sequence_number > skipped:
                    yield PackedBlock(raw)
                if last.sequence_number == upto.sequence_number:
                    break  # it may have grown since
        if last != upto:
            raise PeerLiedError(str(self._url), "SMART-7 head-is-reached", expected=upto, found=last)

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        """See ``PeerDataset``; the peer says where each object is to be read."""
        distinct = list({item.hash: item for item in wanted}.values())
        settings = replace(self._client.settings, token=None)  # addresses bring their own
        resolver = PublicResolver(self._url.host, self._client.resolver)
        async with HttpClient(settings, resolver=resolver) as transfers:
            for start in range(0, len(distinct), MAX_OBJECTS_PER_MESSAGE):
                part = distinct[start : start + MAX_OBJECTS_PER_MESSAGE]
                places = await self._client.retry(lambda part=part: self._locate(part))  # type: ignore[misc]
                downloads = ObjectDownloads(
                    transfers,
                    lambda item, places=places: places[item.hash][0],  # type: ignore[misc]
                    lambda item, places=places: places[item.hash][1],  # type: ignore[misc]
                )
                await downloads.fetch(part, objects, on_bytes)

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        try:
            if self._pull is not None and error is None:
                await self._pull.finish()
        finally:
            await self._end_pull()
            await self._client.close()

    async def _find_number(self, head_hash: Multihash) -> int | None:
        """Ask for the head's block; servers that write blocks anew give other bytes with the same number in them."""
        try:
            raw = await self._client.get_bytes(
                self._url / block_path(head_hash), "block", limit_bytes=MAX_BLOCK_SIZE_BYTES
            )
            return decode_block(raw, expected_hash=None).sequence_number
        except (PeerNotFoundError, MalformedError, UnsupportedError):
            return None

    async def _begin(self, begin_after: Multihash | None) -> TransferPlan | TransferProblem:
        async def attempt() -> TransferPlan | TransferProblem:
            await self._end_pull()
            self._pull = await _Pull.open(self._client, self._url, begin_after)
            self._begun_after = begin_after
            return await self._pull.plan()

        return await self._client.retry(attempt)

    async def _fetch_batch(self) -> Iterator[tuple[Multihash, bytes]]:
        assert self._pull is not None
        batch = await self._pull.fetch()
        payload = await finish_in_thread(batch.payload_bytes)
        return decode_batch(payload, num_blocks=batch.num_blocks)

    async def _locate(self, wanted: Sequence[WantedObject]) -> dict[Multihash, tuple[URL, Mapping[str, str]]]:
        if self._pull is None or self._pull.is_over:
            # The line broke meanwhile. Objects can be asked for only behind blocks, which are read once more.
            await self._begin(self._begun_after)
            assert self._pull is not None
            await self._pull.fetch()
        found = await self._pull.locate(wanted)
        return {
            item.object_file.hash: read_transfer_url(item.download_from, dataset_url=self._url)
            for item in found.strategies
        }

    async def _end_pull(self) -> None:
        if self._pull is not None:
            pull, self._pull = self._pull, None
            await pull.close()


class _Pull:
    """One conversation with its socket."""

    def __init__(self, url: URL, conversation: Conversation, stack: AsyncExitStack) -> None:
        self._url = url
        self._conversation = conversation
        self._stack = stack
        self.is_over = False

    @classmethod
    async def open(cls, client: HttpClient, url: URL, begin_after: Multihash | None) -> "_Pull":
        async with AsyncExitStack() as stack:
            conversation = await open_conversation(stack, client, url / "pull", PullClient(begin_after=begin_after))
            return cls(url, conversation, stack.pop_all())

    async def plan(self) -> TransferPlan | TransferProblem:
        match await self._ask(Opened()):
            case Planned(plan):
                return plan
            case Rejected(problem):
                self.is_over = True
                return problem
        raise AssertionError("a plan or none")

    async def fetch(self) -> BlocksBatch:
        found = await self._ask(FetchBlocks())
        assert isinstance(found, BlocksArrived)
        return found.batch

    async def locate(self, wanted: Sequence[WantedObject]) -> Located:
        found = await self._ask(Locate([object_file_of(item) for item in wanted]))
        assert isinstance(found, Located)
        return found

    async def finish(self) -> None:
        if not self.is_over:
            with mapped_failures(str(self._url)):
                await self._conversation.tell(Finish())

    async def close(self) -> None:
        await self._stack.aclose()

    async def _ask(self, event: Any) -> Any:
        try:
            with mapped_failures(str(self._url)):
                effects = await self._conversation.tell(event) or await self._conversation.listen()
        except BaseException:
            self.is_over = True
            raise
        if isinstance(effects[0], ConversationFailed):
            self.is_over = True
            raise name_peer(self._url, effects[0].error)
        return effects[0]
