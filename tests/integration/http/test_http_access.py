"""Who may read and push: grants, signatures of nodes, quotas; what is hidden looks absent (EX-3, EX-50 to EX-57)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.adapters.node_listing import list_proposed, search_proposed
from odf_node.adapters.peer_addresses import open_peer
from odf_node.adapters.request_signing import NodeSigner
from odf_node.configuration import AccessSettings, Configuration, LimitSettings, Listen, Storage
from odf_node.http.callers import MAX_SIGNATURE_AGE_S, Nonces, node_hash_of
from odf_node.http.served_node import Live
from odf_node.ports.keys import PrivateKey
from odf_node.ports.peer_errors import PeerForbidsError, PeerNotFoundError, PushRejectedError
from odf_node.ports.pushes import PushedHead
from odf_node.store import MetadataStore
from odf_protocol.did import DidKey
from odf_protocol.http_signatures import content_digest
from odf_protocol.timestamp import Timestamp
from support.event_loop import in_loop
from support.exchange_nodes import NOON, TOKEN, Chain, StandingClock, TestNode
from support.http_server import serving as plain_server

FRIEND = PrivateKey(bytes(range(32)))
FRIEND_ID = DidKey(FRIEND.public_key())
HIDDEN = Chain("hidden.data").add(b"secret rows")
SHOWN = Chain("shown.data").add(b"rows for all")
JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def serving(folder: Path, **sections: Any) -> AsyncIterator[tuple[TestNode, str, aiohttp.ClientSession]]:
    node = TestNode.create(folder / "home")
    node.keep(HIDDEN, published=False)
    node.keep(SHOWN)
    async with node.serving(live=Live(Configuration(**sections))) as url, aiohttp.ClientSession() as session:
        yield node, url, session


async def ask(session: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, dict[str, str], str]:
    async with session.get(URL(url, encoded=True), headers=headers) as answer:
        reported = {
            name: value for name, value in answer.headers.items() if name.lower() not in {"x-request-id", "date"}
        }
        body = (await answer.read()).decode("utf-8", "replace")
        return answer.status, reported, body.replace(answer.headers["X-Request-Id"], "ID")


def bearer(secret: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def grant(node: TestNode, *scopes: str, key: DidKey = FRIEND_ID, **changes: Any) -> None:
    node.put_token(f"node-{key}", scopes=scopes, secret_hash=node_hash_of(key), **changes)


def signed(url: str, method: str = "GET", clock: Any = None, **headers: str) -> dict[str, str]:
    return headers | dict(NodeSigner(FRIEND, clock or StandingClock())(method, URL(url, encoded=True), headers))


class At:
    """A clock that stands so many seconds from noon."""

    def __init__(self, seconds: int) -> None:
        self._now = Timestamp(NOON.seconds + seconds)

    def now(self) -> Timestamp:
        return self._now


@in_loop
async def test_hidden_dataset_is_read_with_a_grant_for_it_and_others_learn_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, session):
        node.put_token(TOKEN, scopes=[f"read:{HIDDEN.id}"])
        node.put_token("other", scopes=[f"read:{SHOWN.id}", f"push:{SHOWN.id}"])
        node.put_token("every", scopes=["read"])
        for path in ("refs/head", f"blocks/{HIDDEN.head.hash}"):
            hidden, absent = f"{url}/hidden.data/{path}", f"{url}/absent.data/{path}"
            for headers in ({}, bearer("other")):
                assert await ask(session, hidden, **headers) == await ask(session, absent, **headers)
            for headers in (bearer(), bearer("every")):
                assert (await ask(session, hidden, **headers))[0] == 200
                assert (await ask(session, hidden.replace("hidden", "HIDDEN"), **headers))[0] == 200
                assert (await ask(session, f"{url}/{HIDDEN.id}/{path}", **headers))[0] == 200
                assert (await ask(session, absent, **headers))[0] == 404
        assert "hidden" not in (await ask(session, f"{url}/_odf/v1/datasets", **bearer("other")))[2]
        assert "hidden" in (await ask(session, f"{url}/_odf/v1/datasets", **bearer()))[2]


class Watched:
    """A store that notes what it is asked."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._store, name)


@in_loop
async def test_hidden_dataset_costs_the_same_questions_as_an_absent_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, session):
        watched = Watched(node.store)
    other = replace(node, store=watched)
    async with other.serving(live=Live(Configuration())) as url, aiohttp.ClientSession() as session:
        asked = []
        for name in ("hidden.data", "absent.data"):
            watched.asked.clear()
            assert (await ask(session, f"{url}/{name}/refs/head"))[0] == 404
            asked.append(list(watched.asked))
        assert asked[0]
        assert asked[0] == asked[1]


@in_loop
async def test_node_that_hides_everything_shows_published_datasets_to_its_tokens_only(tmp_path: Path) -> None:
    async with serving(tmp_path, access=AccessSettings(anonymous=False)) as (node, url, session):
        node.put_token(TOKEN, scopes=[f"push:{SHOWN.id}"])
        assert (await ask(session, f"{url}/shown.data/refs/head"))[0] == 404
        assert (await ask(session, f"{url}/shown.data/refs/head", **bearer()))[0] == 200
        assert (await ask(session, f"{url}/hidden.data/refs/head", **bearer()))[0] == 404


@pytest.mark.parametrize("secret", ["wrong", "ended", "revoked", "", "\xff"])
@in_loop
async def test_token_that_is_no_good_opens_nothing_and_closes_nothing(tmp_path: Path, secret: str) -> None:
    async with serving(tmp_path) as (node, url, session):
        node.put_token("ended", scopes=["read"], expires_at=NOON)
        node.put_token("revoked", scopes=["read"], revoked_at=NOON)
        names = ("hidden.data", "x", "shown.data")
        hidden, absent, shown = [await ask(session, f"{url}/{name}/refs/head", **bearer(secret)) for name in names]
        assert hidden == absent
        assert (hidden[0], shown[0]) == (404, 200)


@in_loop
async def test_node_that_was_granted_something_is_known_by_its_signature(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, session):
        head = f"{url}/hidden.data/refs/head"
        assert (await ask(session, head, **signed(head)))[0] == 404  # it is who it says, and has no grant
        grant(node, f"read:{HIDDEN.id}")
        assert (await ask(session, head, **signed(head)))[0] == 200
        with_query = f"{head}?a=b%20c"
        assert (await ask(session, with_query, **signed(with_query)))[0] == 200


@in_loop
async def test_signature_of_another_request_does_not_hold(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, session):
        grant(node, "read")
        head = f"{url}/hidden.data/refs/head"
        other = {
            "path": signed(f"{url}/shown.data/refs/head"),
            "query": signed(f"{head}?a=1"),
            "method": signed(head, "HEAD"),
            "authority": signed("http://other.example/hidden.data/refs/head"),
            "too old": signed(head, clock=At(-MAX_SIGNATURE_AGE_S - 1)),
            "from the future": signed(head, clock=At(MAX_SIGNATURE_AGE_S + 1)),
            "no signature": {"Signature-Input": signed(head)["Signature-Input"]},
            "no key": signed(head) | {"Signature-Input": signed(head)["Signature-Input"].replace("did:key:z", "x")},
        }
        for what, headers in other.items():
            assert (await ask(session, head, **headers))[0] == 401, what
        young = signed(head, clock=At(MAX_SIGNATURE_AGE_S))
        assert (await ask(session, head, **young))[0] == 200
        status, _, text = await ask(session, head, **young)
        assert (status, "used before" in text) == (401, True)


@in_loop
async def test_signature_that_was_used_is_not_taken_again_after_the_node_was_started_anew(tmp_path: Path) -> None:
    async with serving(tmp_path, listen=Listen(public_url="http://data.example")) as (node, url, session):
        grant(node, "read")
        name = {"Host": "data.example"}
        used = signed("http://data.example/hidden.data/refs/head") | name
        assert (await ask(session, f"{url}/hidden.data/refs/head", **used))[0] == 200
    again = replace(node, clock=At(60))
    live = Live(Configuration(listen=Listen(public_url="http://data.example")))
    async with again.serving(live=live) as url, aiohttp.ClientSession() as session:
        status, _, text = await ask(session, f"{url}/hidden.data/refs/head", **used)
        assert (status, "used before" in text) == (401, True)
        new = signed("http://data.example/hidden.data/refs/head", clock=At(60)) | name
        assert (await ask(session, f"{url}/hidden.data/refs/head", **new))[0] == 200


@in_loop
async def test_request_that_was_signed_for_another_node_is_not_taken_under_its_name(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, session):
        grant(node, "read")
        # Under another name nothing is answered (EX-70); under one of this machine with another port, no signature.
        for other, refused in (("other.example:8080", 421), ("localhost:1", 401)):
            theirs = signed(f"http://{other}/hidden.data/refs/head") | {"Host": other}
            status, _, text = await ask(session, f"{url}/hidden.data/refs/head", **theirs)
            assert (status, "listen.public_url" in text) == (refused, True)


@in_loop
async def test_node_behind_a_name_takes_requests_to_that_name_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, listen=Listen(public_url="https://Data.Example")) as (node, url, session):
        grant(node, "read")
        head = f"{url}/hidden.data/refs/head"
        assert (await ask(session, head, **signed(head)))[0] == 401
        for name in ("data.example", "data.example:443"):
            named = signed(f"https://{name}/hidden.data/refs/head") | {"Host": name}
            assert (await ask(session, head, **named))[0] == 200


def test_nonces_are_forgotten_when_they_cannot_be_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    nonces = Nonces()
    assert nonces.add("a", 0, 0)
    assert not nonces.add("a", 0, MAX_SIGNATURE_AGE_S)
    now_s = 2 * MAX_SIGNATURE_AGE_S + 1
    assert nonces.add("a", now_s, now_s)
    monkeypatch.setattr("odf_node.http.callers.MAX_NONCES", 3)
    for second, word in enumerate("bcdef", start=700):
        assert nonces.add(word, second, second)
    assert len(nonces._used) == 3


def test_nonce_that_was_forgotten_is_not_taken_again_when_the_clock_is_set_back() -> None:
    nonces = Nonces()
    assert nonces.add("a", 1000, 1000)
    assert nonces.add("b", 5000, 5000)
    assert not nonces.add("a", 1000, 1001)
    assert nonces.add("c", 1001, 1001)


@pytest.mark.parametrize("ahead_s", [3_600, 86_400, 10 * 365 * 86_400])
def test_clock_that_was_ahead_and_is_right_again_rejects_no_new_signature(ahead_s: int) -> None:
    """DAEMON-15: it rejected every signed request for as long as it had been ahead, up to a restart."""
    now_s = 1_700_000_000
    nonces = Nonces(now_s)
    for step_s in range(0, 4_000, 400):
        assert nonces.add(f"ahead {step_s}", now_s + ahead_s + step_s, now_s + ahead_s + step_s)
    assert nonces.add("right", now_s + 60, now_s + 60)
    for step_s in range(0, 4_000, 400):
        assert not nonces.add(f"ahead {step_s}", now_s + ahead_s + step_s, now_s + 61)
        assert not nonces.add(f"ahead {step_s}", now_s + ahead_s + step_s, now_s + ahead_s + step_s)
    assert not nonces.add("right", now_s + 60, now_s + 62)


def test_many_leaps_of_the_clock_are_remembered_as_few_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """DAEMON-15: what is forgotten is never taken again, however often the clock leaps."""
    monkeypatch.setattr("odf_node.http.callers.MAX_SPANS", 4)
    nonces, times = Nonces(), [leap * leap * 100_000 for leap in range(1, 40)]
    for time_s in times:
        assert nonces.add(str(time_s), time_s, time_s)
    for time_s in times:
        assert not nonces.add(str(time_s), time_s, time_s)
    assert len(nonces._forgotten) <= 4


@in_loop
async def test_client_signs_when_it_is_shown_nothing_otherwise(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, _):
        settings = ClientSettings(sign=NodeSigner(FRIEND, StandingClock()), backoff_s=0.01)
        async with await open_peer(f"{url}/hidden.data", settings) as peer:
            with pytest.raises(PeerNotFoundError):
                await peer.get_head()
        grant(node, f"read:{HIDDEN.id}")
        copy = TestNode.create(tmp_path / "copy")
        async with await open_peer(f"{url}/hidden.data", settings) as peer:
            assert (await peer.get_head()).head == HIDDEN.head
            blocks = [block async for block in peer.iter_blocks(after=None, upto=HIDDEN.head)]
            assert [block.raw for block in blocks] == [block.raw for block in HIDDEN.blocks]
        assert not copy.home.exists()


@in_loop
async def test_plain_server_does_not_learn_who_lists_and_searches() -> None:
    """EX-53."""
    settings = ClientSettings(sign=NodeSigner(FRIEND, StandingClock()), backoff_s=0.01, attempts=1)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=404)

    async with plain_server(answer) as server:
        with pytest.raises(PeerNotFoundError):
            await list_proposed(server.base, settings)
        with pytest.raises(PeerNotFoundError):
            await search_proposed(server.base, ["word"], 10, settings, limit_s=10)
        assert len(server.requests) >= 2
        assert [request.headers for request in server.requests if "Signature" in request.headers] == []


async def push(url: str, source: TestNode, chain: Chain) -> None:
    settings = ClientSettings(sign=NodeSigner(FRIEND, StandingClock()), backoff_s=0.01, attempts=2)
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    await push_dataset(url, proposed, store=source.store, objects=source.objects, settings=settings)


@in_loop
async def test_node_pushes_with_its_signature_alone(tmp_path: Path) -> None:
    source, chain = TestNode.create(tmp_path / "source"), Chain("pushed.data").add(b"x" * 1000)
    source.keep(chain)
    async with serving(tmp_path) as (node, url, _):
        with pytest.raises(PeerForbidsError):
            await push(f"{url}/pushed.data", source, chain)
        grant(node, f"push:{chain.id}")
        await push(f"{url}/pushed.data", source, chain)
        record = node.store.find_dataset(chain.id)
        assert record is not None
        assert record.head == chain.head


@in_loop
async def test_body_of_a_signed_request_cannot_be_replaced(tmp_path: Path) -> None:
    async with serving(tmp_path) as (node, url, session):
        grant(node, "push")
        pushes = f"{url}/_odf/v1/pushes"
        body, other = b'{"a":1}', b'{"a":2}'
        for headers, status in (
            (signed(pushes, "POST"), 401),  # says nothing about the body
            (signed(pushes, "POST", **{"Content-Digest": content_digest(other)}), 400),
            (signed(pushes, "POST", **{"Content-Digest": content_digest(other)}) | {"Content-Digest": "x"}, 401),
        ):
            async with session.post(pushes, data=body, headers=headers | JSON) as answer:
                assert answer.status == status


@in_loop
async def test_peer_that_asks_too_often_waits_and_others_do_not(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=LimitSettings(peer_requests_per_minute=5)) as (node, url, session):
        node.put_token()
        head = f"{url}/shown.data/refs/head"
        answers = [await ask(session, head) for _ in range(8)]
        assert [answer[0] for answer in answers[:5]] == [200] * 5
        assert answers[-1][0] == 429
        assert 0 < int(answers[-1][1]["Retry-After"]) <= 12
        assert (await ask(session, head, **bearer()))[0] == 200


@in_loop
async def test_peer_that_took_its_bytes_of_the_day_comes_back_later(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=LimitSettings(peer_bytes_per_day=20)) as (node, url, session):
        node.put_token()
        path = f"{url}/shown.data/blocks/{SHOWN.head.hash}"
        assert [(await ask(session, path))[0] for _ in range(2)] == [200, 429]
        assert (await ask(session, path, **bearer()))[0] == 200


@pytest.mark.parametrize(
    "storage", [Storage(quota_bytes=1_000_000), Storage(least_free_bytes=2**50)], ids=["quota", "disk"]
)
@in_loop
async def test_push_that_finds_no_room_is_rejected_before_its_objects_are_sent(
    tmp_path: Path, storage: Storage
) -> None:
    source, chain = TestNode.create(tmp_path / "source"), Chain("pushed.data").add(b"x" * 1_000_000)
    source.keep(chain)
    async with serving(tmp_path, storage=storage) as (node, url, _):
        grant(node, "push")
        objects = set(node.objects.iter_hashes())
        with pytest.raises(PushRejectedError, match="no room"):
            await push(f"{url}/pushed.data", source, chain)
        assert set(node.objects.iter_hashes()) == objects
        assert node.store.find_dataset(chain.id) is None
