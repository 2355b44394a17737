"""Tokens for other servers: checked, kept from others, sent to their origin and nowhere else (SMART-12, HOME-23)."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from odf_node.adapters.accounts import ask_for_token, validate_token
from odf_node.adapters.login_file import LoginFile
from odf_node.composition import open_node
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.exchange.logins import Logins, parse_origin
from odf_node.home_folder import HomeFolder
from odf_node.http.served_node import LIVE, Live
from odf_node.ports.peer_errors import PeerForbidsError
from odf_node.records.errors import HomeCorruptError, UnsafeKeyFileError
from odf_protocol.errors import MalformedError
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode, serving


def logins_in(folder: Path) -> Logins:
    return Logins(LoginFile(HomeFolder(folder)), validate_token, ask_for_token)


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        ("https://node.example", "https://node.example"),
        ("https://node.example:443/acc/data", "https://node.example"),
        ("odf+https://Node.Example/acc/data", "https://node.example"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ("odf+http://[::1]:8080/x", "http://[::1]:8080"),
    ],
)
def test_server_is_its_origin(written: str, origin: str) -> None:
    assert parse_origin(written) == origin


@pytest.mark.parametrize("written", ["", "node.example", "file:///x", "https://", "http://host:port", "s3://bucket"])
def test_address_that_is_no_server_is_rejected(written: str) -> None:
    with pytest.raises(UsageError):
        parse_origin(written)


@in_loop
async def test_token_of_a_node_is_checked_kept_and_forgotten(tmp_path: Path) -> None:
    node, logins = TestNode.create(tmp_path / "there"), logins_in(tmp_path / "here")
    node.put_token()
    async with node.serving() as url:
        with pytest.raises(PeerForbidsError):
            await logins.log_in(url, "wrong")
        assert logins.list_origins() == []
        assert await logins.log_in(f"odf+{url}/demo.data", TOKEN)
        assert await logins.check(url)
        assert logins.find_token(f"odf+{url}/other.data") == TOKEN
        assert logins.find_token(url.replace("127.0.0.1", "127.0.0.2")) is None
        assert logins.find_token("file:///x") is None
    logins.log_out(url)
    assert logins.find_token(url) is None
    with pytest.raises(UnknownDatasetError):
        logins.log_out(url)


@in_loop
async def test_server_that_knows_no_tokens_is_believed(tmp_path: Path) -> None:
    app = web.Application()
    app[LIVE] = Live()
    logins = logins_in(tmp_path)
    async with serving(app) as url:
        assert not await logins.log_in(url, "t")
        assert logins.list_origins() == [url]
        assert logins.log_out_everywhere() == [url]


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ü", "x" * 9_000])
@in_loop
async def test_text_that_is_no_token_is_rejected(tmp_path: Path, token: str) -> None:
    with pytest.raises(UsageError, match="no access token"):
        await logins_in(tmp_path).log_in("http://127.0.0.1:9", token)


@pytest.mark.parametrize("answer", ["{}", "[]", "no json", '{"accessToken":1}'])
@in_loop
async def test_answer_to_a_password_without_a_token_is_malformed(tmp_path: Path, answer: str) -> None:
    async with password_server(answer) as url:
        with pytest.raises(MalformedError):
            await logins_in(tmp_path).log_in_as(url, "me", "secret")


@in_loop
async def test_password_is_exchanged_for_a_token(tmp_path: Path) -> None:
    logins = logins_in(tmp_path)
    async with password_server('{"accessToken":"t"}') as url:
        await logins.log_in_as(url, "me", "secret")
        assert logins.find_token(url) == "t"


def password_server(answer: str) -> Any:
    app = web.Application()
    app[LIVE] = Live()

    async def log_in(request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["loginMethod"] == "password"
        assert json.loads(asked["loginCredentialsJson"]) == {"login": "me", "password": "secret"}
        return web.Response(text=answer)

    app.router.add_post("/platform/login", log_in)
    return serving(app)


def test_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = LoginFile(HomeFolder(tmp_path / "home"))
    store.put("https://a", "1")
    store.put("https://b", "2")
    path = tmp_path / "home" / "logins.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert store.read() == {"https://a": "1", "https://b": "2"}
    path.chmod(0o644)
    with pytest.raises(UnsafeKeyFileError):
        store.find("https://a")


@pytest.mark.parametrize("content", ["", "[]", '{"https://a": 1}', "\x00"])
def test_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    store = LoginFile(HomeFolder(tmp_path / "home"))
    store.put("https://a", "1")
    (tmp_path / "home" / "logins.json").write_text(content)
    with pytest.raises(HomeCorruptError, match=r"logins\.json"):
        store.read()


@in_loop
async def test_pull_sends_the_token_of_the_server(tmp_path: Path) -> None:
    chain, there = Chain("demo.data").add(b"x"), TestNode.create(tmp_path / "there")
    there.keep(chain, published=False)
    there.put_token(scopes=(f"push:{chain.id}",))
    here = open_node(tmp_path / "here")
    async with there.serving() as url:
        await here.logins.log_in(url, TOKEN)
        async with await here.outgoing.open_peer(f"{url}/demo.data") as peer:
            assert (await peer.get_head()).head == chain.head
    here.close()
