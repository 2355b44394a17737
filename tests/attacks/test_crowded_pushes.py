"""Pushers who take more places or more room than they are given: EX-19, EX-57, EX-74, SMART-10."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from odf_node.configuration import Configuration, Storage
from odf_node.http.served_node import Live
from odf_protocol.exchange.limits import MAX_PUSH_SESSIONS, MAX_TOKEN_PUSH_SESSIONS
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode, dataset_id

PUSHES = "_odf/v1/pushes"
MIB = 1024 * 1024


@asynccontextmanager
async def pushing(node: TestNode, **options: Any) -> AsyncIterator[tuple[URL, aiohttp.ClientSession]]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with node.serving(**options) as url, aiohttp.ClientSession(headers=headers) as session:
        yield URL(url), session


async def begin(url: URL, session: aiohttp.ClientSession, chain: Chain) -> tuple[int, Any]:
    head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
    asked = {"dataset_id": str(chain.id), "name": chain.name, "head": head, "signed_head": None}
    async with session.post(url / PUSHES, json=asked) as answer:
        return answer.status, await answer.json(content_type=None)


@in_loop
async def test_pushes_that_begin_at_the_same_moment_are_as_many_as_one_token_may_have(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "node")
    node.put_token()
    async with pushing(node) as (url, session):
        chains = [Chain(f"data{number}") for number in range(3 * MAX_PUSH_SESSIONS)]
        answers = await asyncio.gather(*(begin(url, session, chain) for chain in chains))
        statuses = [status for status, _ in answers]
        assert statuses.count(201) == MAX_TOKEN_PUSH_SESSIONS
        assert statuses.count(503) == len(chains) - MAX_TOKEN_PUSH_SESSIONS
        # Whoever was turned away has a place when one is free.
        ended = next(state for status, state in answers if status == 201)
        async with session.delete(url / PUSHES / ended["push_id"]) as answer:
            assert answer.status == 204
        assert (await begin(url, session, Chain("later")))[0] == 201
    assert node.store.list_datasets() == ()


@in_loop
async def test_packs_of_one_push_are_in_memory_one_at_a_time(tmp_path: Path) -> None:
    """Each may have 21 MB, and come a byte at a time."""
    node, chain = TestNode.create(tmp_path / "node"), Chain("demo.data").add(b"rows")
    node.put_token()
    body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
    async with pushing(node) as (url, session):
        _, state = await begin(url, session, chain)
        blocks = (url / PUSHES / state["push_id"] / "blocks").with_query(after=-1)
        going_on = asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield body[:10]
            await going_on.wait()
            yield body[10:]

        async def send(data: Any) -> int:
            async with session.post(blocks, data=data) as answer:
                await answer.read()
                return answer.status

        first = asyncio.create_task(send(slowly()))
        for _ in range(200):
            if await send(b"no pack") == 503:
                break
            if first.done():  # it came while this one was there
                assert await first == 503
                first = asyncio.create_task(send(slowly()))
        assert [await send(body) for _ in range(5)] == [503] * 5
        going_on.set()
        assert await first == 200
    assert node.store.list_datasets() == ()


def _chain_of(number: int) -> Chain:
    """A chain of always the same dataset, with other rows."""
    return Chain("demo.data").add(number.to_bytes(4, "big") * (MIB // 4))


@in_loop
async def test_parts_of_pushes_that_are_given_up_do_not_fill_the_disk_beyond_the_quota(tmp_path: Path) -> None:
    """All but the last byte of each object, so that none is ever whole, rejected or removed."""
    quota_bytes = 3 * MIB
    node = TestNode.create(tmp_path / "node")
    node.put_token()
    async with pushing(node, live=Live(Configuration(storage=Storage(quota_bytes=quota_bytes)))) as (url, session):
        statuses = []
        for number in range(6):
            chain = _chain_of(number)
            _, state = await begin(url, session, chain)
            push = url / PUSHES / state["push_id"]
            body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
            async with session.post((push / "blocks").with_query(after=-1), data=body) as answer:
                statuses.append(answer.status)
            if statuses[-1] == 200:
                (found,) = chain.objects.items()
                async with session.put(push / "objects" / str(found[0]), data=found[1][:-1]) as answer:
                    assert answer.status == 201
        kept_bytes = sum(path.stat().st_size for path in node.home.path.rglob("*") if path.suffix == ".part")
        assert kept_bytes <= quota_bytes
        assert statuses[:4] == [200, 200, 200, 507]  # with a push that is rejected goes what others of it left
        assert node.objects.measure().used_bytes == kept_bytes
    assert node.store.list_datasets() == ()


@in_loop
async def test_part_that_arrived_counts_once_when_the_push_goes_on(tmp_path: Path) -> None:
    node, chain = TestNode.create(tmp_path / "node"), _chain_of(1)
    node.put_token()
    async with pushing(node, live=Live(Configuration(storage=Storage(quota_bytes=MIB + 10)))) as (url, session):
        body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
        ((object_hash, content),) = chain.objects.items()
        for part, position in ((content[: MIB // 2], 0), (content[MIB // 2 :], MIB // 2)):
            _, state = await begin(url, session, chain)
            push = url / PUSHES / state["push_id"]
            async with session.post((push / "blocks").with_query(after=-1), data=body) as answer:
                assert answer.status == 200
            where = (push / "objects" / str(object_hash)).with_query(position=position)
            async with session.put(where, data=part) as answer:
                assert answer.status == 201
        async with session.post(push / "commit") as answer:
            assert answer.status == 202
        async with session.get(push.with_query(wait_s=20)) as answer:
            assert (await answer.json())["status"] == "accepted"


@pytest.mark.parametrize("scope", ["read", f"read:{dataset_id('demo.data')}", f"replace:{dataset_id('demo.data')}"])
@in_loop
async def test_token_that_only_reads_sends_no_blocks(tmp_path: Path, scope: str) -> None:
    """A name that is free would take 64 MiB of them before it is known whose they are."""
    node = TestNode.create(tmp_path / "node")
    node.put_token(scopes=(scope,))
    headers = {"x-odf-smtp-version": "1"}
    async with pushing(node) as (url, session):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(url / "free.name/push", headers=headers)
        assert refused.value.status == 403
        async with session.get(url / "_odf/v1/health") as answer:
            assert answer.status == 200
    assert node.store.list_datasets() == ()
