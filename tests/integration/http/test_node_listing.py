"""What a node offers to whoever asks (EX-14): asked by a client that believes nothing, shown by ``list URL``."""

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.node_listing import list_proposed
from odf_node.cli.main import main
from odf_node.http import exchange
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode
from support.http_server import serving

HIDDEN = Chain("hidden.data").add(b"secret rows")
SHOWN = [Chain(f"shown.{number}").add(b"rows for all") for number in range(5)]


def node_with_datasets(folder: Path) -> TestNode:
    node = TestNode.create(folder / "home")
    node.keep(HIDDEN, published=False)
    for chain in SHOWN:
        node.keep(chain)
    return node


def summary(name: str) -> dict[str, Any]:
    head = {"sequence_number": 1, "block_hash": str(HIDDEN.head.hash)}
    return {"dataset_id": str(HIDDEN.id), "name": name, "kind": "Root", "head": head, "trust": "own"}


def page(*names: str, next_after: str | None = None) -> dict[str, Any]:
    return {"datasets": [summary(name) for name in names], "next_after": next_after}


@in_loop
async def test_list_has_all_pages_of_what_the_caller_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "PAGE_DATASETS", 2)
    node = node_with_datasets(tmp_path)
    node.put_token(scopes=["read"])
    async with node.serving() as url:
        shown = await list_proposed(url)
        granted = await list_proposed(url, ClientSettings(token=TOKEN))
    assert [each.name for each in shown] == [f"shown.{number}" for number in range(5)]
    assert [each.dataset_id for each in shown] == [str(chain.id) for chain in SHOWN]
    assert [each.name for each in granted] == ["hidden.data", *(each.name for each in shown)]


@pytest.mark.parametrize(
    ("pages", "error"),
    [
        ([page("b", "a")], PeerLiedError),
        ([page("a", "a")], PeerLiedError),
        ([page("a", next_after="b")], PeerLiedError),
        ([page("a", next_after="a"), page("a")], PeerLiedError),
        ([page(next_after="a")], PeerLiedError),
        ([{"datasets": [summary("a") | {"dataset_id": "did:odf:no"}]}], MalformedError),
        ([{"datasets": [summary("a") | {"kind": "Other"}]}], MalformedError),
        ([{"no": "list"}], MalformedError),
    ],
)
@in_loop
async def test_list_that_cannot_be_true_is_rejected(pages: list[dict[str, Any]], error: type[OdfError]) -> None:
    left = iter(pages)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(next(left), content_type=JSON_MEDIA_TYPE)

    async with serving(answer) as server:
        with pytest.raises(error):
            await list_proposed(server.base)
        assert all(request.path == "/_odf/v1/datasets" for request in server.requests)


@in_loop
async def test_list_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odf_node.adapters.node_listing.MAX_LISTED_DATASETS", 20)

    async def answer(request: web.Request) -> web.Response:
        name = f"{request.query.get('after', 'a')}a"
        return web.json_response(page(name, next_after=name), content_type=JSON_MEDIA_TYPE)

    async with serving(answer) as server:
        with pytest.raises(UnsupportedError):
            await list_proposed(server.base)
    assert len(server.requests) == 20


@in_loop
async def test_server_without_a_list_and_what_is_no_address_are_said_to_be_so() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404)

    async with serving(answer) as server:
        with pytest.raises(PeerNotFoundError):
            await list_proposed(server.base)
    for address in ("file:///tmp", "ftp://a", "http://", "http://me:secret@a.example"):
        with pytest.raises((MalformedError, UnsupportedError)):
            await list_proposed(address)


def test_list_of_an_address_shows_what_is_proposed_and_what_is_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = node_with_datasets(tmp_path / "there")
    mine = TestNode.create(tmp_path / "here")
    mine.keep(SHOWN[1])
    home = str(tmp_path / "here")

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["--home", home, "list", *words])
        return code, *capsys.readouterr()

    with in_thread(node) as url:
        _check_list_of_address(run, url)


@contextmanager
def in_thread(node: TestNode) -> Iterator[str]:
    """Serve a node beside the test, which runs commands in the main thread."""
    addresses: queue.Queue[str] = queue.Queue()
    loop, ends = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with node.serving() as url:
            addresses.put(url)
            await ends.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield addresses.get(timeout=60)
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
        loop.close()


def _check_list_of_address(run: Callable[..., tuple[int, str, str]], url: str) -> None:
    code, out, _ = run(url, "-o", "json")
    assert code == 0
    rows = json.loads(out)
    assert [(row["name"], row["here"], row["blocksHere"]) for row in rows[:2]] == [
        ("shown.0", None, 0),
        ("shown.1", "shown.1", SHOWN[1].head.sequence_number + 1),
    ]
    assert HIDDEN.name not in out
    code, out, _ = run(url)
    assert out.splitlines()[0].split()[:3] == ["NAME", "KIND", "BLOCKS"]
    assert len(out.splitlines()) == 7
    code, out, err = run("shown.1", url)
    assert (code, out) == (2, "")
    assert "name one node" in err
