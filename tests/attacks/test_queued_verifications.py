"""Pushers who would have many verifications at once, each with an engine: they wait for each other, fairly (EX-74)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.ports.peer_client import PeerDataset
from odf_node.ports.pushes import PushedHead
from odf_node.records.errors import TooManyWaitingError
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_protocol.errors import UnavailableError
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from support.event_loop import in_loop
from support.exchange_nodes import Chain, RecordingReceiver, TestNode, serving
from support.raw_http import request_of, send_raw, status_of
from support.whole_app import create_whole_app

TOKENS = {name: f"odf_token_of_{name}" for name in ("mallory", "alice", "bob")}


@dataclass
class SlowReceiver(RecordingReceiver):
    """Judges until it is let go; counts how many it judges at once."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    now: int = 0
    most: int = 0

    async def receive(self, proposed: PeerDataset, **options: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.go_on.wait()
            await asyncio.sleep(0)
            return await super().receive(proposed, **options)
        finally:
            self.now -= 1


class Scene:
    """A node whose judge waits, and pushers with a token each."""

    def __init__(self, tmp_path: Path, *, at_once: int = 1, waiting: int = 4) -> None:
        self.node = TestNode.create(tmp_path / "home")
        for name, secret in TOKENS.items():
            self.node.put_token(secret, id=name)
        self.kept = self.node.keep(Chain("kept.data").add(b"rows"))
        self.receiver = SlowReceiver(self.node.store, self.node.objects)
        self.semaphore = FairSemaphore(lambda: TurnLimits(at_once, waiting))
        self.served = replace(self.node.served, pushes=self.receiver, verifications=self.semaphore)

    async def commit(self, url: str, session: aiohttp.ClientSession, who: str, name: str) -> tuple[int, str, Any]:
        """Push a chain without objects up to its commit; give status, address and answer."""
        chain, headers = Chain(name), {"Authorization": f"Bearer {TOKENS[who]}"}
        head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
        asked = {"dataset_id": str(chain.id), "name": chain.name, "head": head, "signed_head": None}
        async with session.post(f"{url}/_odf/v1/pushes", json=asked, headers=headers) as answer:
            assert answer.status == 201, await answer.text()
            place = f"{url}/_odf/v1/pushes/{(await answer.json())['push_id']}"
        body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
        async with session.post(f"{place}/blocks?after=-1", data=body, headers=headers) as answer:
            assert answer.status == 200
        async with session.post(f"{place}/commit", headers=headers) as answer:
            if answer.status == 503:
                assert int(answer.headers["Retry-After"]) > 0
            return answer.status, place, await answer.json()

    async def state(self, session: aiohttp.ClientSession, who: str, place: str, wait_s: int = 15) -> str:
        headers = {"Authorization": f"Bearer {TOKENS[who]}"}
        async with session.get(f"{place}?wait_s={wait_s}", headers=headers) as answer:
            return str((await answer.json())["status"])


async def until(is_so: Callable[[], bool]) -> None:
    """Ask until it is so: what is asked about has no event of its own."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("at_once", [1, 2])
@in_loop
async def test_five_pushes_are_verified_as_many_at_once_as_the_operator_says(tmp_path: Path, at_once: int) -> None:
    scene = Scene(tmp_path, at_once=at_once, waiting=8)
    async with serving(create_whole_app(scene.served)) as url, aiohttp.ClientSession() as session:
        pushes = [await scene.commit(url, session, "mallory", f"pushed.{number}") for number in range(5 - at_once)]
        pushes += [await scene.commit(url, session, "alice", f"other.{number}") for number in range(at_once)]
        assert [status for status, _, _ in pushes] == [202] * 5
        await until(lambda: scene.receiver.now == at_once)
        # Others are served, and nothing of what waits can be seen.
        assert status_of(await send_raw(url, request_of("GET", "/kept.data/refs/head"))) == 200
        assert [record.name for record in scene.node.store.list_datasets()] == ["kept.data"]
        scene.receiver.go_on.set()
        for number, (_, place, _) in enumerate(pushes):
            who = "mallory" if number < 5 - at_once else "alice"
            assert await scene.state(session, who, place) == "accepted"
        assert scene.receiver.most == at_once


@in_loop
async def test_pushers_have_their_turns_round_robin(tmp_path: Path) -> None:
    scene = Scene(tmp_path, waiting=8)
    async with serving(create_whole_app(scene.served)) as url, aiohttp.ClientSession() as session:
        for number in range(4):
            assert (await scene.commit(url, session, "mallory", f"pushed.{number}"))[0] == 202
        _, alices, _ = await scene.commit(url, session, "alice", "alices")
        _, bobs, _ = await scene.commit(url, session, "bob", "bobs")
        scene.receiver.go_on.set()
        assert await scene.state(session, "alice", alices) == "accepted"
        assert await scene.state(session, "bob", bobs) == "accepted"
        await until(lambda: len(scene.receiver.actors) == 6)
        assert scene.receiver.actors == ["mallory", "mallory", "alice", "bob", "mallory", "mallory"]


@in_loop
async def test_commit_beyond_the_queue_is_told_to_come_later_and_loses_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, waiting=4)
    async with serving(create_whole_app(scene.served)) as url, aiohttp.ClientSession() as session:
        found = [await scene.commit(url, session, "mallory", f"pushed.{number}") for number in range(4)]
        assert [status for status, _, _ in found] == [202, 202, 202, 503]  # one has its turn, two wait: half of all
        assert found[3][2]["type"] == "urn:odf-node:problem:busy"
        assert (await scene.commit(url, session, "alice", "alices"))[0] == 202
        scene.receiver.go_on.set()
        place = found[3][1]
        headers = {"Authorization": f"Bearer {TOKENS['mallory']}"}
        assert await scene.state(session, "mallory", found[2][1]) == "accepted"
        assert await scene.state(session, "mallory", place, 0) == "receiving"
        async with session.post(f"{place}/commit", headers=headers) as answer:
            assert answer.status == 202
        assert await scene.state(session, "mallory", place) == "accepted"


@in_loop
async def test_open_pushes_of_one_token_leave_room_for_others(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with serving(create_whole_app(scene.served)) as url, aiohttp.ClientSession() as session:
        found = []
        for number in range(10):
            chain = Chain(f"open.{number}")
            head = {"sequence_number": 0, "block_hash": str(chain.head.hash)}
            asked = {"dataset_id": str(chain.id), "name": chain.name, "head": head, "signed_head": None}
            headers = {"Authorization": f"Bearer {TOKENS['mallory']}"}
            async with session.post(f"{url}/_odf/v1/pushes", json=asked, headers=headers) as answer:
                found.append(answer.status)
        assert found == [201] * 8 + [503] * 2
        scene.receiver.go_on.set()
        assert (await scene.commit(url, session, "alice", "alices"))[0] == 202


@in_loop
async def test_pushes_of_the_smart_protocol_wait_in_the_same_queue(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    pusher = TestNode.create(tmp_path / "pusher")
    chain = Chain("smart.data").add(b"slice")
    pusher.keep(chain)
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    app = create_whole_app(scene.served)

    async def push(url: str) -> None:
        from yarl import URL

        from odf_node.adapters.http_client import HttpClient
        from odf_node.adapters.peer_urls import parse_peer_url
        from odf_smart.pushing import SmartPush

        there = parse_peer_url(f"{url}/{chain.name}")
        assert isinstance(there, URL)
        async with HttpClient(ClientSettings(token=TOKENS["alice"], attempts=1)) as client:
            await SmartPush(client, there, proposed, pusher.store, pusher.objects, None).run()

    async with serving(app) as url, aiohttp.ClientSession() as session:
        assert (await scene.commit(url, session, "mallory", "pushed"))[0] == 202
        await until(lambda: scene.receiver.now == 1)
        pushing = asyncio.create_task(push(url))
        await until(lambda: bool(scene.semaphore._waiting))
        assert scene.receiver.now == 1
        scene.receiver.go_on.set()
        await pushing
        assert scene.receiver.most == 1
        assert scene.receiver.actors == ["mallory", "alice"]


@in_loop
async def test_node_that_stops_does_not_begin_what_waits(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with serving(create_whole_app(scene.served, push_grace_s=0.1)) as url, aiohttp.ClientSession() as session:
        for number in range(2):
            assert (await scene.commit(url, session, "mallory", f"pushed.{number}"))[0] == 202
        await until(lambda: scene.receiver.now == 1)
    assert (scene.receiver.most, scene.receiver.received) == (1, [])
    assert [record.name for record in scene.node.store.list_datasets()] == ["kept.data"]


@in_loop
async def test_pusher_that_is_told_to_come_later_does(tmp_path: Path) -> None:
    scene = Scene(tmp_path, waiting=0)
    pusher = TestNode.create(tmp_path / "pusher")
    chain = Chain("patient.data").add(b"slice")
    pusher.keep(chain)
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    settings = ClientSettings(token=TOKENS["alice"], backoff_s=0.05, attempts=50)
    async with serving(create_whole_app(scene.served)) as url, aiohttp.ClientSession() as session:
        assert (await scene.commit(url, session, "mallory", "pushed"))[0] == 202
        pushing = asyncio.create_task(
            push_dataset(
                f"{url}/{chain.name}",
                proposed,
                store=pusher.store,
                objects=pusher.objects,
                settings=settings,
            )
        )
        await asyncio.sleep(0.5)
        scene.receiver.go_on.set()
        assert (await pushing).sent_blocks == 2


@in_loop
async def test_who_waits_no_longer_makes_room_and_keeps_nobody_waiting() -> None:
    semaphore = FairSemaphore(lambda: TurnLimits(1, 2))
    first, second, third = semaphore.ask("a"), semaphore.ask("b"), semaphore.ask("c")
    await first.__aenter__()
    with pytest.raises(TooManyWaitingError):
        semaphore.ask("d")
    waiting = asyncio.create_task(second.__aenter__())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await first.__aexit__(None, None, None)
    async with asyncio.timeout(5), third:
        pass
    semaphore.close()
    with pytest.raises(UnavailableError):
        semaphore.ask("a")
