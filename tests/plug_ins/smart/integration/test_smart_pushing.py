"""Our client and our server of Smart Transfer pushes, over real sockets (SMART-9, SMART-10)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_push import push_dataset
from odf_node.configuration import Configuration, Storage
from odf_node.http.served_node import Live
from odf_node.ports.peer_errors import PeerForbidsError, PushRejectedError
from odf_node.ports.pushes import PushedHead, PushOutcome
from odf_protocol.errors import OdfError, RejectedError, UnavailableError, UnsupportedError
from odf_protocol.multihash import Multihash
from odf_smart.pushing import SmartPush
from odf_smart_protocol import batches, push_client
from odf_smart_protocol.batches import encode_batch
from odf_smart_protocol.messages import BlocksBatch, PushBlocks, encode_message
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode, dataset_id

VERSION = {"x-odf-smtp-version": "1"}


def demo_chain(length: int = 3, name: str = "demo.data") -> Chain:
    chain = Chain(name)
    for number in range(length):
        chain.add(b"slice %d" % number, b"state %d" % number)
    return chain


def two_nodes(tmp_path: Path, chain: Chain, *, scopes: tuple[str, ...] = ("push",)) -> tuple[TestNode, TestNode]:
    here, there = TestNode.create(tmp_path / "here"), TestNode.create(tmp_path / "there")
    here.keep(chain)
    there.put_token(scopes=scopes)
    return here, there


async def push(
    here: TestNode, address: str, chain: Chain, *, token: str | None = TOKEN, arrived: Any = None, **pull_options: bool
) -> PushOutcome:
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None, **pull_options)
    async with HttpClient(ClientSettings(attempts=1, token=token)) as client:
        url = URL(f"{address}/{chain.name}/")
        return await SmartPush(client, url, proposed, here.store, here.objects, arrived).run()


@in_loop
async def test_new_dataset_arrives_whole_and_unpublished(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    sent: list[int] = []
    async with there.serving() as url:
        outcome = await push(here, url, chain, arrived=sent.append)
    record = there.store.find_dataset(chain.id)
    assert record is not None
    assert (record.head, record.published) == (chain.head, False)
    assert {hash_: there.objects.get_path(hash_).read_bytes() for hash_ in chain.objects} == chain.objects
    assert (outcome.sent_blocks, outcome.known_head, outcome.is_verified) == (4, None, False)
    assert sum(sent) == outcome.sent_bytes == sum(map(len, chain.objects.values()))
    assert there.receiver.actors == [f"token-{TOKEN[-4:]}"]


@in_loop
async def test_dataset_that_is_to_be_public_is_published(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    async with there.serving() as url:
        await push(here, url, chain, is_public=True)
    record = there.store.find_dataset(chain.id)
    assert record is not None
    assert record.published


@in_loop
async def test_increment_and_nothing_new(tmp_path: Path) -> None:
    chain = demo_chain(1)
    here, there = two_nodes(tmp_path, chain)
    async with there.serving() as url:
        await push(here, url, chain)
        here.keep(chain.add(b"more"))
        outcome = await push(here, url, chain)
        assert (outcome.sent_blocks, outcome.sent_bytes) == (1, 4)
        again = await push(here, url, chain)
        assert again.was_up_to_date
    assert len(there.receiver.received) == 2


@in_loop
async def test_dataset_of_a_seed_alone_is_pushed(tmp_path: Path) -> None:
    chain = Chain("demo.data")
    here, there = two_nodes(tmp_path, chain)
    async with there.serving() as url:
        assert (await push(here, url, chain)).sent_blocks == 1


@in_loop
async def test_long_chain_is_pushed_in_several_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_BLOCKS", 3)
    monkeypatch.setattr(push_client, "MAX_OBJECTS_PER_MESSAGE", 1)
    chain = demo_chain(7)
    here, there = two_nodes(tmp_path, chain)
    async with there.serving() as url:
        assert (await push(here, url, chain)).sent_blocks == 8
    assert [head.head.sequence_number for head in there.receiver.received] == [2, 5, 7]


@in_loop
async def test_what_arrived_in_a_push_that_broke_is_not_sent_again_and_what_others_have_is(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    there.put_objects(chain.objects.values())
    there.receiver.reject_with = UnavailableError("the first attempt fails")
    async with there.serving() as url:
        sent: list[int] = []
        with pytest.raises(OdfError):
            await push(here, url, chain, arrived=sent.append)
        assert sum(sent) == sum(map(len, chain.objects.values()))
        there.receiver.reject_with = None
        assert (await push(here, url, chain)).sent_bytes == 0


@in_loop
async def test_other_history_is_not_proposed_without_force(tmp_path: Path) -> None:
    chain, other = demo_chain(), Chain("demo.data").add(b"other")
    here, there = two_nodes(tmp_path, chain)
    there.keep(other)
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match="histories have parted; --force"):
            await push(here, url, chain)
    assert there.receiver.received == []


@in_loop
async def test_forced_history_is_proposed_whole(tmp_path: Path) -> None:
    chain, other = demo_chain(), Chain("demo.data").add(b"other")
    here, there = two_nodes(tmp_path, chain)
    there.keep(other)
    there.receiver.reject_with = RejectedError("ACCEPT-9 offer-continues-the-history-held-here")
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match="ACCEPT-9 offer-continues"):
            await push(here, url, chain, replaces_history=True)
    (proposed,) = there.receiver.received
    assert proposed.head == chain.head
    record = there.store.find_dataset(chain.id)
    assert record is not None
    assert record.head == other.head


@pytest.mark.parametrize(("scopes", "forced"), [(("push",), False), (("push", "replace"), True)])
@in_loop
async def test_force_needs_a_token_that_may_replace(tmp_path: Path, scopes: tuple[str, ...], forced: bool) -> None:
    chain, other = demo_chain(), Chain("demo.data").add(b"other")
    here, there = two_nodes(tmp_path, chain, scopes=scopes)
    there.keep(other)
    there.receiver.reject_with = RejectedError("ROWS-3 offsets")
    async with there.serving() as url:
        with pytest.raises(PushRejectedError):
            await push(here, url, chain, replaces_history=True)
    assert there.receiver.forced == [forced]


@pytest.mark.parametrize(
    ("error", "stated"),
    [
        (RejectedError("ROWS-3 offsets", sequence_number=2), "block 2 breaks ROWS-3 offsets"),
        (UnavailableError("/home/me/odf-node: no space"), "this node cannot do that now"),
    ],
    ids=["refused", "cannot"],
)
@in_loop
async def test_verdict_reaches_the_pusher_without_our_insides(tmp_path: Path, error: Exception, stated: str) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    there.receiver.reject_with = error
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match=stated) as refused:
            await push(here, url, chain)
    assert "/home/me" not in str(refused.value)
    assert there.store.find_dataset(chain.id) is None


@in_loop
async def test_what_can_never_be_accepted_is_rejected_before_objects_are_sent(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    there.receiver.reject_early_with = RejectedError("ACCEPT-8 own-datasets-are-written-here-only")
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match="ACCEPT-8"):
            await push(here, url, chain)
    assert not any(there.objects.has(hash_) for hash_ in chain.objects)


@in_loop
async def test_push_that_does_not_fit_is_rejected_before_objects_are_sent(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    async with there.serving(live=Live(Configuration(storage=Storage(quota_bytes=10)))) as url:
        with pytest.raises(PushRejectedError, match="EX-57 storage"):
            await push(here, url, chain)
    assert not any(there.objects.has(hash_) for hash_ in chain.objects)


@in_loop
async def test_first_block_is_never_replaced(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    there.keep(Chain("demo.data", Chain("another").add(b"x").blocks, {Multihash.of_sha3_256(b"x"): b"x"}))
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match="first block is never replaced"):
            await push(here, url, chain, replaces_history=True)


@in_loop
async def test_dataset_has_one_name(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    there.keep(Chain("known", chain.blocks, chain.objects))
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match="under another name"):
            await push(here, url, chain)


@pytest.mark.parametrize(
    ("token", "scopes", "status"),
    [
        (None, ("push",), 401),
        ("wrong", ("push",), 401),
        (TOKEN, (f"push:{dataset_id('another')}",), 403),
        (TOKEN, (), 403),
    ],
    ids=["no-token", "wrong-token", "token-for-another-dataset", "token-for-nothing"],
)
@in_loop
async def test_token_decides_about_a_dataset_that_is_here(
    tmp_path: Path, token: str | None, scopes: tuple[str, ...], status: int
) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, demo_chain(4), scopes=scopes)
    there.keep(chain)
    async with there.serving() as url:
        with pytest.raises(PeerForbidsError) as refused:
            await push(here, url, demo_chain(4), token=token)
    assert refused.value.status == status


@in_loop
async def test_token_for_another_dataset_begins_none(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain, scopes=(f"push:{dataset_id('another')}",))
    async with there.serving() as url:
        with pytest.raises(PushRejectedError, match="EX-17 token"):
            await push(here, url, chain)
    assert there.store.find_dataset(chain.id) is None


@in_loop
async def test_who_may_write_an_unpublished_dataset_may_read_it(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain, scopes=(f"push:{chain.id}",))
    there.keep(chain, published=False)
    there.put_token("another-token", scopes=(f"push:{dataset_id('another')}",))
    async with there.serving() as url, aiohttp.ClientSession() as session:
        assert (await push(here, url, chain)).was_up_to_date
        for token, status in ((TOKEN, 200), ("another-token", 404), ("wrong", 404)):
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{url}/demo.data/refs/head", headers=headers) as answer:
                assert answer.status == status


@in_loop
async def test_smart_address_of_a_node_of_our_kind_is_pushed_to_by_our_exchange(tmp_path: Path) -> None:
    chain = demo_chain()
    here, there = two_nodes(tmp_path, chain)
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=b"signed")
    async with there.serving() as url:
        outcome = await push_dataset(
            f"odf+{url}/demo.data",
            proposed,
            store=here.store,
            objects=here.objects,
            settings=ClientSettings(attempts=1, token=TOKEN),
        )
    assert outcome.is_verified
    assert there.receiver.received[0].signed_head == b"signed"


@in_loop
async def test_http_address_of_another_server_is_told_how_to_push_there(tmp_path: Path) -> None:
    from aiohttp import web

    from odf_node.http.served_node import LIVE, Live
    from support.exchange_nodes import serving

    chain = demo_chain()
    here, _ = two_nodes(tmp_path, chain)
    app = web.Application()
    app[LIVE] = Live()
    async with serving(app) as url:
        with pytest.raises(UnsupportedError, match=r"odf\+http://127"):
            await push_dataset(
                f"{url}/demo.data",
                PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None),
                store=here.store,
                objects=here.objects,
                settings=ClientSettings(attempts=1),
            )


# Pushers that do otherwise


@asynccontextmanager
async def raw_push(there: TestNode) -> AsyncIterator[tuple[aiohttp.ClientSession, Any, str]]:
    headers = {**VERSION, "Authorization": f"Bearer {TOKEN}"}
    async with (
        there.serving() as url,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        session.ws_connect(f"{url}/demo.data/push", headers=headers) as socket,
    ):
        yield session, socket, url


def proposal_of(blocks: int, current: str | None = None, *, force: bool = False) -> str:
    zeros = dict.fromkeys(("num_objects", "num_records", "bytes_in_raw_blocks", "bytes_in_raw_objects"), 0)
    return json.dumps(
        {
            "current_head": current,
            "transfer_plan": {"num_blocks": blocks, **zeros},
            "force_update_if_diverged": force,
            "visibility_for_created_dataset": "Private",
        }
    )


def blocks_of(chain: Chain) -> str:
    payload, count = encode_batch((block.hash, block.raw) for block in chain.blocks)
    return encode_message(PushBlocks(new_blocks=BlocksBatch.of(payload, count))).decode()


def objects_of(chain: Chain) -> str:
    items = [
        {"object_type": "DataSlice", "physical_hash": str(hash_), "size": len(data)}
        for hash_, data in chain.objects.items()
    ]
    return json.dumps({"object_files": items, "is_truncated": False})


@in_loop
async def test_pusher_that_uploads_nothing_is_not_confirmed(tmp_path: Path) -> None:
    there, chain = TestNode.create(tmp_path / "there"), demo_chain()
    there.put_token()
    async with raw_push(there) as (_, socket, _):
        for text in (proposal_of(4), blocks_of(chain), objects_of(chain)):
            await socket.send_str(text)
            assert "Ok" in await socket.receive_json()
        await socket.send_str('{"details":"Complete"}')
        await socket.send_str("{}")
        closed = await socket.receive()
        assert closed.data == 1011
        assert "SMART-10 all-objects" in closed.extra
    assert there.receiver.received == []


@in_loop
async def test_upload_of_other_bytes_is_rejected(tmp_path: Path) -> None:
    there, chain = TestNode.create(tmp_path / "there"), demo_chain(1)
    there.put_token()
    async with raw_push(there) as (session, socket, url):
        for text in (proposal_of(2), blocks_of(chain), objects_of(chain)):
            await socket.send_str(text)
            answer = await socket.receive_json()
        place = answer["Ok"]["object_transfer_strategies"][0]["upload_to"]
        headers = {header["name"]: header["value"] for header in place["headers"]}
        assert headers == {"x-odf-smtp-version": "1", "authorization": f"Bearer {TOKEN}"}
        for data, status in ((b"slice X", 422), (b"slice 00", 400), (b"", 400), (b"slice 0", 201), (b"slice 0", 200)):
            async with session.put(place["url"], data=data, headers=headers) as put:
                assert put.status == status, data
        other = f"{place['url'].rsplit('/', 1)[0]}/{Multihash.of_sha3_256(b'x')}"
        for address in (other, f"{url}/_odf/v1/uploads/guessed/{other.rsplit('/', 1)[1]}"):
            async with session.put(address, data=b"x", headers=headers) as put:
                assert put.status == 404
        there.put_token("another-token")
        async with session.put(place["url"], data=b"slice 0", headers={"Authorization": "Bearer another-token"}) as put:
            assert put.status == 404


@pytest.mark.parametrize(
    ("proposal", "sent", "stated"),
    [
        pytest.param(proposal_of(4, str(Multihash.of_sha3_256(b"x"))), None, "InvalidHead", id="another-head"),
        pytest.param(proposal_of(0), None, "a-push-has-blocks", id="no-blocks"),
        pytest.param("[]", None, "PushRequest", id="no-offer"),
        pytest.param(proposal_of(3), blocks_of(demo_chain()), "as-many-blocks-as-planned", id="too-many-blocks"),
        pytest.param(proposal_of(2), blocks_of(Chain("demo.data", demo_chain(2).blocks[1:])), "blocks-in-order",
                     id="no-seed"),
        pytest.param(proposal_of(2), blocks_of(Chain("demo.data", demo_chain(2).blocks[::2])), "blocks-in-order",
                     id="a-gap"),
    ],
)  # fmt: skip
@in_loop
async def test_push_that_cannot_be_is_ended_with_the_reason(
    tmp_path: Path, proposal: str, sent: str | None, stated: str
) -> None:
    there = TestNode.create(tmp_path / "there")
    there.put_token()
    async with raw_push(there) as (_, socket, _):
        await socket.send_str(proposal)
        answer = await socket.receive()
        if sent is not None:
            await socket.send_str(sent)
            answer = await socket.receive()
            if answer.type is aiohttp.WSMsgType.TEXT:
                assert answer.data == '{"Ok":{}}'
                await socket.send_str('{"object_files":[],"is_truncated":false}')
                answer = await socket.receive()
        assert stated in str(answer)
    assert there.receiver.received == []
    assert there.store.list_datasets() == ()


@in_loop
async def test_pusher_that_leaves_leaves_nothing(tmp_path: Path) -> None:
    there, chain = TestNode.create(tmp_path / "there"), demo_chain()
    there.put_token()
    async with raw_push(there) as (_, socket, _):
        for text in (proposal_of(4), blocks_of(chain)):
            await socket.send_str(text)
            await socket.receive()
    assert there.store.list_datasets() == ()
    assert there.receiver.received == []
