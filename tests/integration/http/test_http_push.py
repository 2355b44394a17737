"""Pushing, from both sides over real sockets (EX-17 to EX-22)."""

import asyncio
import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.configuration import Configuration, Storage
from odf_node.errors import ProposalRejectedError
from odf_node.http import push_registry
from odf_node.http.served_node import Live
from odf_node.ports.peer_errors import PeerForbidsError, PeerUnavailableError, PushRejectedError
from odf_node.ports.pushes import PushedHead, PushOutcome
from odf_protocol.errors import MalformedError, RejectedError, UnavailableError, UnsupportedError
from odf_protocol.exchange import limits
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.event_loop import in_loop
from support.exchange_nodes import NOON, TOKEN, Chain, TestNode, read_kamu_chain

QUICK = ClientSettings(token=TOKEN, backoff_s=0.001, attempts=3)
BIG = bytes(range(256)) * 4096 * 3  # three chunks


def demo_chain() -> Chain:
    chain = Chain("demo.data").add(BIG, b"checkpoint").add(b"second")
    chain.signatures = {1: b"signature"}
    chain.step_records = {2: b"record"}
    return chain


class Pair:
    """Who pushes and who receives."""

    def __init__(self, tmp_path: Path, url: str, receiver: TestNode, session: aiohttp.ClientSession) -> None:
        self.pusher = TestNode.create(tmp_path / "pusher")
        self.receiver = receiver
        self.url = url
        self.session = session
        self.api = f"{url}/_odf/v1/pushes"

    async def push(self, chain: Chain, settings: ClientSettings = QUICK, **options: Any) -> PushOutcome:
        if self.pusher.store.find_dataset(chain.id) is None or self.pusher.store.get_head(chain.id) != chain.head:
            self.pusher.keep(chain)
        proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=b"signed head", with_records=True)
        return await push_dataset(
            f"{self.url}/{chain.name}",
            proposed,
            store=self.pusher.store,
            objects=self.pusher.objects,
            settings=settings,
            **options,
        )

    async def ask(self, method: str, path: str = "", **options: Any) -> tuple[int, Any]:
        token = options.pop("token", TOKEN)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.request(method, self.api + path, headers=headers, **options) as answer:
            return answer.status, await answer.json(content_type=None) if answer.status != 204 else None

    async def begin(self, chain: Chain, **changes: Any) -> tuple[int, Any]:
        head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
        return await self.ask(
            "POST", json={"dataset_id": str(chain.id), "name": chain.name, "head": head, "signed_head": None} | changes
        )

    async def begin_with_blocks(self, chain: Chain) -> str:
        _, state = await self.begin(chain)
        push = f"/{state['push_id']}"
        body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
        assert (await self.ask("POST", f"{push}/blocks?after=-1", data=body))[0] == 200
        return push


@asynccontextmanager
async def pair(tmp_path: Path, **options: Any) -> AsyncIterator[Pair]:
    receiver = TestNode.create(tmp_path / "receiver")
    receiver.put_token()
    async with receiver.serving(**options) as url, aiohttp.ClientSession() as session:
        yield Pair(tmp_path, url, receiver, session)


@in_loop
async def test_pushed_dataset_arrives_with_blocks_objects_signatures_and_records(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        reported: list[int] = []
        outcome = await nodes.push(demo_chain(), on_bytes=reported.append)
        chain, store = demo_chain(), nodes.receiver.store
        assert (outcome.sent_blocks, outcome.sent_bytes, outcome.known_head) == (3, sum(reported), None)
        assert sum(reported) == len(BIG) + len(b"checkpoint") + len(b"second")
        assert [block.raw for block in store.iter_blocks(chain.id)] == [block.raw for block in chain.blocks]
        assert [block.signature for block in store.iter_blocks(chain.id)] == [None, b"signature", None]
        assert list(store.iter_step_records(chain.id, after=-1, upto=9)) == [(2, b"record")]
        for object_hash in chain.objects:
            nodes.receiver.objects.check(object_hash)
        head = nodes.receiver.receiver.received[0]
        assert (head.name, head.dataset_id, head.signed_head) == ("demo.data", chain.id, b"signed head")
        assert nodes.receiver.receiver.actors == ["token-6789"]


@in_loop
async def test_second_push_sends_what_is_new_and_third_sends_nothing(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        chain = demo_chain()
        await nodes.push(chain)
        first_head = chain.head
        outcome = await nodes.push(chain.add(b"third"))
        assert (outcome.sent_blocks, outcome.sent_bytes, outcome.known_head) == (1, 5, first_head)
        assert (await nodes.push(chain)).was_up_to_date
        assert len(nodes.receiver.receiver.received) == 2


@in_loop
async def test_chain_that_another_implementation_wrote_can_be_pushed(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        chain = read_kamu_chain("countries.daily")
        await nodes.push(chain)
        assert nodes.receiver.store.get_head(chain.id) == chain.head


@in_loop
async def test_chain_longer_than_a_pack_is_pushed_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odf_protocol.exchange.packs.PACK_TARGET_BYTES", 600)
    async with pair(tmp_path) as nodes:
        chain = Chain("demo.data")
        for n in range(12):
            chain.add(b"slice %d" % n)
        await nodes.push(chain)
        assert nodes.receiver.store.get_head(chain.id) == chain.head


# Tokens


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(None, id="none"),
        pytest.param("odf_test_token_unknown", id="unknown"),
        pytest.param("expired", id="expired"),
        pytest.param("revoked", id="revoked"),
        pytest.param("x" * 5000, id="endless"),
    ],
)
@in_loop
async def test_push_without_a_good_token_is_rejected_with_the_same_words(tmp_path: Path, token: str | None) -> None:
    async with pair(tmp_path) as nodes:
        nodes.receiver.put_token("expired", expires_at=NOON)
        nodes.receiver.put_token("revoked", revoked_at=Timestamp(NOON.seconds - 1))
        with pytest.raises(PeerForbidsError, match=r"keep it with 'odf-node login http://[^/]+'$") as refused:
            await nodes.push(demo_chain(), replace(QUICK, token=token))
        assert ("no token was shown" if token is None else "unknown, expired or revoked") in str(refused.value)
        assert refused.value.status == 401
        assert nodes.receiver.store.list_datasets() == ()
        assert nodes.receiver.receiver.received == []


@in_loop
async def test_token_of_one_dataset_allows_that_one_alone(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        chain = demo_chain()
        nodes.receiver.put_token("narrow", scopes=(f"push:{chain.id}",))
        nodes.receiver.put_token("other", scopes=(f"push:{Chain('another.data').id}",))
        await nodes.push(chain, replace(QUICK, token="narrow"))
        with pytest.raises(PeerForbidsError) as refused:
            await nodes.push(chain.add(b"more"), replace(QUICK, token="other"))
        assert refused.value.status == 403


@in_loop
async def test_push_is_visible_to_its_own_token_only(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        nodes.receiver.put_token("another-token")
        push = await nodes.begin_with_blocks(demo_chain())
        for method, path in [("GET", ""), ("DELETE", ""), ("POST", "/blocks?after=2"), ("POST", "/commit")]:
            assert (await nodes.ask(method, push + path, token="another-token"))[0] == 404
            assert (await nodes.ask(method, push + path, token=None))[0] == 401


@in_loop
async def test_token_that_is_revoked_in_the_middle_ends_the_push(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        nodes.receiver.store.revoke_token("token-6789", NOON)
        assert (await nodes.ask("GET", push))[0] == 401


# Rejections


@in_loop
async def test_rejection_reaches_the_pusher_with_rule_sentence_and_report(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        nodes.receiver.receiver.reject_with = ProposalRejectedError(
            "REPLAY-1 same-result", "one cell differs", sequence_number=2, report={"cells": [{"offset": 7}]}
        )
        with pytest.raises(PushRejectedError, match="one cell differs") as refused:
            await nodes.push(demo_chain())
        assert (refused.value.rule, refused.value.sequence_number) == ("REPLAY-1 same-result", 2)
        assert refused.value.report == {"cells": [{"offset": 7}]}
        assert nodes.receiver.store.list_datasets() == ()


@in_loop
async def test_early_rejection_comes_before_anything_is_sent(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        nodes.receiver.receiver.reject_early_with = RejectedError("ACCEPT-8 name", found="demo.data")
        with pytest.raises(PushRejectedError, match="ACCEPT-8"):
            await nodes.push(demo_chain())
        assert list(nodes.receiver.objects.iter_hashes()) == []


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        pytest.param(UnavailableError("/home/secret is full"), "cannot do that now", id="unavailable"),
        pytest.param(ZeroDivisionError("a mistake"), "node failed", id="mistake"),
    ],
)
@in_loop
async def test_push_that_could_not_be_judged_is_no_rejection_and_hides_why(
    tmp_path: Path, failure: Exception, reported: str
) -> None:
    async with pair(tmp_path) as nodes:
        nodes.receiver.receiver.reject_with = failure
        with pytest.raises(PeerUnavailableError, match=reported) as failed:
            await nodes.push(demo_chain())
        assert str(failure) not in str(failed.value)


@in_loop
async def test_receiver_that_is_ahead_or_has_another_history_is_left_alone(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        chain = demo_chain()
        nodes.receiver.keep(demo_chain().add(b"theirs"))
        with pytest.raises(PushRejectedError, match="pull first"):
            await nodes.push(chain.add(b"ours"))


@in_loop
async def test_push_to_what_takes_none_says_so(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "receiver")
    node.put_token()
    node.receiver = None  # type: ignore[assignment]
    async with node.serving() as url, aiohttp.ClientSession() as session:
        nodes = Pair(tmp_path, url, node, session)
        with pytest.raises(UnsupportedError, match="takes no pushes"):
            await nodes.push(demo_chain())
        assert (await nodes.begin(demo_chain()))[0] == 403


# Protocol


@in_loop
async def test_receiver_asks_for_the_objects_that_blocks_name_and_takes_no_others(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        chain = demo_chain()
        push = await nodes.begin_with_blocks(chain)
        _, state = await nodes.ask("GET", push)
        assert {item["object_hash"] for item in state["missing"]} == {str(h) for h in chain.objects}
        assert state["missing_count"] == 3
        foreign = Multihash.of_sha3_256(b"foreign")
        assert (await nodes.ask("PUT", f"{push}/objects/{foreign}", data=b"foreign"))[0] == 404


@in_loop
async def test_commit_before_everything_is_there_is_rejected_and_the_push_goes_on(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        _, state = await nodes.begin(demo_chain())
        status, problem = await nodes.ask("POST", f"/{state['push_id']}/commit")
        assert (status, problem["rule"]) == (422, "EX-20 all-blocks")
        push = await nodes.begin_with_blocks(demo_chain())
        status, problem = await nodes.ask("POST", f"{push}/commit")
        assert (status, problem["rule"]) == (422, "EX-20 all-objects")
        assert (await nodes.ask("GET", push))[1]["status"] == "receiving"


@in_loop
async def test_object_is_uploaded_in_parts_from_where_it_stopped(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        where = f"{push}/objects/{Multihash.of_sha3_256(BIG)}"
        assert await nodes.ask("PUT", where, data=BIG[:5000]) == (201, {"position": 5000})
        assert await nodes.ask("GET", where) == (200, {"position": 5000})
        status, problem = await nodes.ask("PUT", f"{where}?position=4999", data=io.BytesIO(BIG[4999:]))
        assert (status, problem["position"]) == (409, 5000)
        assert await nodes.ask("PUT", f"{where}?position=5000", data=io.BytesIO(BIG[5000:])) == (
            201,
            {"position": len(BIG)},
        )
        assert await nodes.ask("GET", where) == (200, {"position": len(BIG)})


@in_loop
async def test_upload_from_position_zero_begins_again(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        where = f"{push}/objects/{Multihash.of_sha3_256(BIG)}"
        await nodes.ask("PUT", where, data=b"wrong bytes")
        assert await nodes.ask("PUT", where, data=io.BytesIO(BIG)) == (201, {"position": len(BIG)})


@in_loop
async def test_object_with_more_bytes_than_its_block_says_is_cut_off(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        where = f"{push}/objects/{Multihash.of_sha3_256(b'second')}"
        assert (await nodes.ask("PUT", where, data=b"second and more"))[0] == 413

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 65_536

        with suppress(aiohttp.ClientError):  # the line may be cut before the answer is read
            assert (await nodes.ask("PUT", where, data=endless()))[0] == 413
        assert (await nodes.ask("GET", where))[1] == {"position": 0}


@in_loop
async def test_object_of_other_bytes_is_rejected_and_thrown_away(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        where = f"{push}/objects/{Multihash.of_sha3_256(b'second')}"
        status, problem = await nodes.ask("PUT", where, data=b"SECOND")
        assert (status, problem["rule"]) == (422, "physical-hash")
        assert (await nodes.ask("GET", where))[1] == {"position": 0}


@in_loop
async def test_upload_that_is_cut_is_continued_by_the_next_push(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        where = f"{push}/objects/{Multihash.of_sha3_256(BIG)}"

        async def cut() -> AsyncIterator[bytes]:
            yield BIG[:2_000_000]
            await asyncio.sleep(0.05)
            raise ConnectionResetError("the line is cut")

        with pytest.raises((aiohttp.ClientError, ConnectionResetError)):
            await nodes.ask("PUT", where, data=cut(), timeout=aiohttp.ClientTimeout(total=5))
        kept = 0
        while not kept:  # the server notices the cut on its own time
            kept = (await nodes.ask("GET", where))[1]["position"]
        reported: list[int] = []
        outcome = await nodes.push(demo_chain(), on_bytes=reported.append)
        assert outcome.sent_bytes == sum(reported) == len(BIG) - kept + len(b"checkpoint") + len(b"second")


@pytest.mark.parametrize(
    "make_blocks",
    [
        pytest.param(lambda chain: chain.blocks[1:], id="gap-at-the-start"),
        pytest.param(lambda chain: [chain.blocks[0], chain.blocks[2]], id="gap"),
        pytest.param(lambda chain: chain.blocks[:1] * 2, id="repeated"),
        pytest.param(lambda chain: [*chain.blocks, *demo_chain().add(b"x").blocks[3:]], id="beyond-the-head"),
        pytest.param(lambda chain: [chain.blocks[0], Chain("other").add(b"x").blocks[1]], id="of-another-chain"),
    ],
)
@in_loop
async def test_blocks_that_do_not_follow_are_rejected_and_nothing_is_taken(tmp_path: Path, make_blocks: Any) -> None:
    async with pair(tmp_path) as nodes:
        chain = demo_chain()
        _, state = await nodes.begin(chain)
        push = f"/{state['push_id']}"
        body, _ = encode_pack(PackedBlock(block.raw) for block in make_blocks(chain))
        status, problem = await nodes.ask("POST", f"{push}/blocks?after=-1", data=body)
        assert (status, problem["rule"][:5]) == (422, "EX-19")
        assert (await nodes.ask("GET", push))[1]["received_upto"] == -1


@in_loop
async def test_blocks_sent_twice_are_rejected_the_second_time(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        body, _ = encode_pack(PackedBlock(block.raw) for block in demo_chain().blocks)
        status, problem = await nodes.ask("POST", f"{push}/blocks?after=-1", data=body)
        assert (status, problem["rule"]) == (422, "EX-19 blocks-in-order")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"force": True}, id="unknown-field"),
        pytest.param({"name": "../etc"}, id="no-name"),
        pytest.param({"dataset_id": "did:key:z6Mk"}, id="no-identity"),
        pytest.param({"head": {"sequence_number": 0, "block_hash": "f00"}}, id="no-hash"),
        pytest.param({"signed_head": "A" * 100_000}, id="signed-head-too-large"),
    ],
)
@in_loop
async def test_push_request_that_makes_no_sense_is_rejected(tmp_path: Path, changes: dict[str, Any]) -> None:
    async with pair(tmp_path) as nodes:
        assert (await nodes.begin(demo_chain(), **changes))[0] == 400


@in_loop
async def test_body_beyond_its_limit_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odf_node.http.push.MAX_PACK_BYTES", 1000)
    async with pair(tmp_path) as nodes:
        _, state = await nodes.begin(demo_chain())
        status, _ = await nodes.ask("POST", f"/{state['push_id']}/blocks", data=b"x" * 5000)
        assert status == 413


@in_loop
async def test_more_pushes_than_the_limit_are_turned_away_until_one_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_registry, "MAX_PUSH_SESSIONS", 2)
    async with pair(tmp_path) as nodes:
        first = (await nodes.begin(Chain("a")))[1]
        await nodes.begin(Chain("b"))
        assert (await nodes.begin(Chain("c")))[0] == 503
        assert (await nodes.begin(Chain("b")))[0] == 201  # begun again: the first one makes room
        assert (await nodes.ask("DELETE", f"/{first['push_id']}"))[0] == 204
        assert (await nodes.begin(Chain("c")))[0] == 201


@in_loop
async def test_push_that_nobody_continues_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        monkeypatch.setattr(push_registry, "PUSH_IDLE_S", -1.0)
        await nodes.begin(Chain("other"))
        assert (await nodes.ask("GET", push))[0] == 404


@in_loop
async def test_receiver_that_was_started_anew_gets_the_push_again(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        forgetful = nodes.receiver.receiver.receive
        lost = []

        async def receive(proposed: Any, **asked: Any) -> Any:
            if not lost:
                lost.append(True)
                raise UnavailableError("the first attempt fails")
            return await forgetful(proposed, **asked)

        nodes.receiver.receiver.receive = receive  # type: ignore[method-assign]
        with pytest.raises(PeerUnavailableError):
            await nodes.push(demo_chain())
        reported: list[int] = []
        await nodes.push(demo_chain(), on_bytes=reported.append)
        assert reported == []  # every object was there already


@in_loop
async def test_objects_of_a_running_push_are_not_swept(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        second = Multihash.of_sha3_256(b"second")
        await nodes.ask("PUT", f"{push}/objects/{second}", data=b"second")
        assert not nodes.receiver.objects.sweep(lambda: (), now=NOON).ran
        assert len(list(nodes.receiver.home.downloads.glob(f"*/{second}"))) == 1
        await nodes.ask("DELETE", push)
        assert list(nodes.receiver.home.downloads.iterdir()) == []
        assert not nodes.receiver.objects.has(second)


@in_loop
async def test_push_that_nobody_continues_lets_a_sweep_run_and_keeps_what_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_registry, "IDLE_LOOK_S", 0.01)
    async with pair(tmp_path) as nodes:
        push = await nodes.begin_with_blocks(demo_chain())
        second = Multihash.of_sha3_256(b"second")
        await nodes.ask("PUT", f"{push}/objects/{second}", data=b"second")
        monkeypatch.setattr(push_registry, "PUSH_IDLE_S", -1.0)
        while (await nodes.ask("GET", push))[0] != 404:  # noqa: ASYNC110 - asking is the only way to learn it
            await asyncio.sleep(0.01)
        now = Timestamp(int(time.time()))
        swept = nodes.receiver.objects.sweep(lambda: (), now=now)
        assert (swept.ran, swept.objects) == (True, 0)
        monkeypatch.setattr(push_registry, "PUSH_IDLE_S", 900.0)
        _, state = await nodes.begin(demo_chain())
        body, _ = encode_pack(PackedBlock(block.raw) for block in demo_chain().blocks)
        _, state = await nodes.ask("POST", f"/{state['push_id']}/blocks?after=-1", data=body)
        assert str(second) not in {item["object_hash"] for item in state["missing"]}
        assert state["missing_count"] == 2


@in_loop
async def test_pushes_that_fit_only_one_by_one_are_not_taken_together(tmp_path: Path) -> None:
    live = Live(Configuration(storage=Storage(quota_bytes=2 * len(BIG))))
    async with pair(tmp_path, live=live) as nodes:
        first = await nodes.begin_with_blocks(demo_chain())
        other = Chain("other.data").add(BIG[::-1])
        with pytest.raises(PushRejectedError, match="no room"):
            await nodes.push(other)
        await nodes.ask("DELETE", first)
        await nodes.push(other)
        assert nodes.receiver.store.get_head(other.id) == other.head


@in_loop
async def test_verification_that_runs_when_the_node_stops_is_waited_for(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        begun, release = asyncio.Event(), asyncio.Event()
        real = nodes.receiver.receiver.receive

        async def slow(proposed: Any, **asked: Any) -> Any:
            begun.set()
            await release.wait()
            return await real(proposed, **asked)

        nodes.receiver.receiver.receive = slow  # type: ignore[method-assign]
        push = asyncio.create_task(nodes.push(demo_chain(), replace(QUICK, attempts=1)))
        await begun.wait()
        release.set()
    await asyncio.gather(push, return_exceptions=True)
    assert nodes.receiver.store.get_head(demo_chain().id) == demo_chain().head


def test_push_limits_hold_together() -> None:
    assert limits.MAX_PACK_RAW_BYTES > limits.PACK_TARGET_BYTES
    assert limits.PUSH_WAIT_S < limits.MESSAGE_S
    assert limits.MAX_PUSH_BLOCK_BYTES > limits.MAX_PACK_BYTES


@in_loop
async def test_folder_cannot_be_pushed_to(tmp_path: Path) -> None:
    async with pair(tmp_path) as nodes:
        proposed = PushedHead(dataset_id=demo_chain().id, head=demo_chain().head, signed_head=None)
        for address, kind in [("file:///tmp/x", UnsupportedError), ("http://host", MalformedError)]:
            with pytest.raises(kind):
                await push_dataset(
                    address,
                    proposed,
                    store=nodes.pusher.store,
                    objects=nodes.pusher.objects,
                    settings=QUICK,
                )
