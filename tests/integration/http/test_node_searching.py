"""What others tell who searches at them, and what a reader believes of it (EX-89, EX-90)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.node_listing import search_proposed
from odf_node.cli.main import main
from odf_node.datasets import searching
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.exchange.limits import MAX_REPORTED_CHARACTERS, MAX_SEARCH_WORDS
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE
from odf_protocol.peer_addresses import PeerAddress, sign_peer
from odf_protocol.timestamp import Timestamp
from support.command_line import run_command
from support.described_datasets import add_described
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode
from support.http_server import serving

AT = ("--system-time", "2026-01-02T00:00:00Z")
DATASETS = [
    ("a.shops", "Sales of all shops", "Umsatz", "day DATE, amount BIGINT"),
    ("b.sky", "What the shops saw", "Größe", "day DATE, rain BIGINT"),
    ("c.secret", "Salaries of all shops", "Umsatz", "day DATE, amount BIGINT"),
]


@pytest.fixture
def node(tmp_path: Path) -> TestNode:
    home = tmp_path / "there"
    add_described(home, DATASETS)
    assert main(["--home", str(home), "publish", "--off", "c.secret"]) == 0
    return TestNode.create(home)


def summary(name: str, **texts: Any) -> dict[str, Any]:
    chain = Chain("any")
    head = {"sequence_number": 0, "block_hash": str(chain.head.hash)}
    found = {"dataset_id": str(chain.id), "name": name, "kind": "Root", "head": head, "trust": "own"}
    return found | ({"texts": texts} if texts else {})


def page(*summaries: dict[str, Any], next_after: str | None = None) -> web.Response:
    body = {"datasets": summaries, "next_after": next_after}
    return web.json_response(body, content_type=JSON_MEDIA_TYPE)


async def ask(
    url: str, *words: str, most: int = 50, limit_s: float = 20.0, token: str | None = None
) -> list[tuple[str, tuple[str, ...]]]:
    settings = ClientSettings(attempts=1, token=token)
    found = await search_proposed(url, words, most, settings, limit_s=limit_s)
    return [(each.name, each.where) for each in found]


@in_loop
async def test_other_node_is_searched_in_all_texts_of_what_the_caller_may_read(
    node: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.put_token(scopes=["read"])
    async with node.serving() as url:
        assert await ask(url, "SHOPS", "amount") == [("a.shops", ("name", "description", "column amount"))]
        assert await ask(url, "grösse") == [("b.sky", ("keyword Größe",))]
        assert await ask(url, "salaries") == []
        assert await ask(url, "AddPushSource") == []
        assert await ask(url, "salaries", token=TOKEN) == [("c.secret", ("description",))]
        monkeypatch.setattr(searching, "PAGE_SEARCHED", 1)
        assert [name for name, _ in await ask(url, "day", token=TOKEN)] == ["a.shops", "b.sky", "c.secret"]
        monkeypatch.setattr(searching, "MAX_SEARCH_LOOKS", 1)
        # The first page has nothing to show, and says where the search goes on.
        assert [name for name, _ in await ask(url, "rain")] == ["b.sky"]


@in_loop
async def test_words_that_are_too_many_or_too_long_are_rejected(node: TestNode) -> None:
    async with node.serving() as url, aiohttp.ClientSession() as session:
        for words in (["a"] * (MAX_SEARCH_WORDS + 1), ["a" * (MAX_REPORTED_CHARACTERS + 1)], [""]):
            asked = session.get(f"{url}/_odf/v1/datasets", params=[("word", word) for word in words])
            async with asked as answer:
                assert answer.status == 400
        assert await ask(url, *["day"] * MAX_SEARCH_WORDS) != []


@in_loop
async def test_node_that_does_not_search_is_searched_by_names() -> None:
    async def answer(_: web.Request) -> web.Response:
        return page(summary("shops.a"), summary("sky"))

    async with serving(answer) as server:
        assert await ask(server.base, "shop") == [("shops.a", ("name",))]


@in_loop
async def test_what_a_node_tells_beside_the_words_is_passed_over() -> None:
    async def answer(_: web.Request) -> web.Response:
        return page(summary("a", description="buy here"), summary("b", columns=["the shop"]))

    async with serving(answer) as server:
        assert await ask(server.base, "shop") == [("b", ("column the shop",))]


@pytest.mark.parametrize("texts", [{"description": "a" * 2001}, {"columns": ["a"] * 21}, {"keywords": ["a" * 101]}])
@in_loop
async def test_texts_beyond_their_limits_are_rejected(texts: dict[str, Any]) -> None:
    async def answer(_: web.Request) -> web.Response:
        return page(summary("a", **texts))

    async with serving(answer) as server:
        with pytest.raises(MalformedError):
            await ask(server.base, "a")


@pytest.mark.parametrize("shows", [True, False])
@in_loop
async def test_search_without_end_is_left(shows: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        name = f"{int(request.query.get('after', '0')) + 1:09}"
        return page(*([summary(name)] if shows else []), next_after=name)

    async with serving(answer) as server:
        with pytest.raises(PeerUnavailableError, match="no whole answer"):
            await ask(server.base, "shop", limit_s=0.5)
        # One that has the word on each page is left when there are as many as are shown.
        if shows:
            assert len(await ask(server.base, "0", most=3)) == 3


@in_loop
async def test_search_that_goes_back_or_stands_is_rejected() -> None:
    for goes_on in ("a", "0"):

        async def answer(request: web.Request, goes_on: str = goes_on) -> web.Response:
            return page(summary("b" if "after" not in request.query else "c"), next_after=goes_on)

        async with serving(answer) as server:
            with pytest.raises(PeerLiedError):
                await ask(server.base, "shop")


@in_loop
async def test_slow_node_is_left() -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return page()

    async with serving(answer) as server:
        with pytest.raises(OdfError, match="no whole answer within"):
            await ask(server.base, "shop", limit_s=0.3)


@in_loop
async def test_far_search_asks_peers_and_names_in_one_line_who_did_not_answer(node: TestNode, tmp_path: Path) -> None:
    """EX-90: what gossip named in a private network is not connected to."""
    reached: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        reached.append(request.path)
        return page(summary("shops\x1b[2Jx"))

    mine = TestNode.create(tmp_path / "mine")
    async with node.serving() as url, serving(answer) as strange, serving(answer) as heard:
        for named in (url, strange.base, "http://localhost:1"):
            mine.store.name_peer(named, Timestamp.parse("2020-01-01T00:00:00Z"))
        record = sign_peer(
            bytes(range(32)),
            addresses=(PeerAddress.parse(heard.base),),
            time=Timestamp.parse("2026-01-01T00:00:00Z"),
            expires=Timestamp.parse("2026-01-05T00:00:00Z"),
        )
        mine.store.replace_peer_records([record.raw, b"no record"])
        nearby = await asyncio.to_thread(run_command, tmp_path / "mine", "search", "shops")
        assert reached == []
        shown = await asyncio.to_thread(run_command, tmp_path / "mine", *AT, "search", "shops", "--far")
        done = await asyncio.to_thread(run_command, tmp_path / "mine", *AT, "search", "shops", "--far", "-o", "json")
        assert heard.requests == []
    assert "nothing has all these words" in nearby.stderr
    assert done.returncode == 0
    assert sorted((row["name"], row["where"]) for row in json.loads(done.stdout)) == [
        *[("a.shops", ["name", "description"]), ("b.sky", ["description"])],
        ("shops\x1b[2Jx", ["name"]),
    ]
    assert f"2 of 4 nodes did not answer as they should: http://localhost:1, {heard.base}\n" in done.stderr
    assert "\x1b" not in shown.stdout + shown.stderr + done.stdout


@in_loop
async def test_dataset_that_is_here_and_elsewhere_is_one_line_with_all_places(node: TestNode, tmp_path: Path) -> None:
    """HOME-53."""
    mine = TestNode.create(tmp_path / "mine")
    async with node.serving() as url:
        mine.store.name_peer(url, Timestamp.parse("2020-01-01T00:00:00Z"))
        pulled = await asyncio.to_thread(run_command, tmp_path / "mine", "pull", f"{url}/a.shops", "--as", "my.copy")
        assert pulled.returncode == 0, pulled.stderr
        shown = await asyncio.to_thread(run_command, tmp_path / "mine", "search", "shops", "--far")
        done = await asyncio.to_thread(run_command, tmp_path / "mine", "search", "shops", "--far", "-o", "json")
    assert [(row["name"], row["at"], row["alsoAt"]) for row in json.loads(done.stdout)] == [
        ("my.copy", "here", [f"{url}/a.shops"]),
        ("b.sky", f"{url}/b.sky", []),
    ]
    assert f"here, {url}/a.shops" in shown.stdout


@in_loop
async def test_server_of_the_reference_implementation_is_searched_by_its_own_list() -> None:
    """EX-91; what cannot be read is taken for no such server."""
    nodes = [
        {"id": str(Chain("any").id), "name": "a", "alias": "me/a", "kind": "ROOT",
         "metadata": {"currentInfo": {"description": "All shops" + "x" * 3000, "keywords": None}}},
        {"id": str(Chain("any").id), "name": "b", "alias": "me/b", "kind": "ROOT",
         "metadata": {"currentInfo": {"description": None, "keywords": ["x"]}}},
    ]  # fmt: skip
    body: list[Any] = [{"data": {"search": {"query": {"nodes": nodes}}}}]

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(body[0]) if request.path == "/graphql" else web.Response(status=404)

    async with serving(answer) as server:
        (found,) = await search_proposed(f"odf+{server.base}", ["shops"], 50, ClientSettings(attempts=1), limit_s=20.0)
        assert (found.url, found.where) == (f"odf+{server.base}/me/a", ("description",))
        assert all("Authorization" not in each.headers and "Signature" not in each.headers for each in server.requests)
        for body[0] in ({"data": None}, {"data": {"search": {"query": {"nodes": nodes * 51}}}}, []):
            with pytest.raises(PeerNotFoundError):
                await ask(server.base, "shops")


@in_loop
async def test_other_node_that_does_not_answer_stops_no_other(tmp_path: Path) -> None:
    """EX-90; and what a node hides is not found (EX-89)."""
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("hidden.sales").add(b"secret"), published=False)
    node.keep(Chain("shown.sales").add(b"rows"))
    async with node.serving() as url:
        done = await asyncio.to_thread(
            run_command, tmp_path / "mine", "search", "SALES", url, "http://localhost:1", "-o", "json"
        )
    assert [(row["name"], row["at"]) for row in json.loads(done.stdout)] == [("shown.sales", f"{url}/shown.sales")]
    assert done.returncode == 5  # of the one that did not answer
    assert "search: http://localhost:1" in done.stderr
