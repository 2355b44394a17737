"""Web pages of others that have a browser ask this node: by a name that leads to the loopback, by forms, by sockets.

Each attack is rejected with a problem and changes nothing, and others are served (EX-70, EX-71).
"""

import gzip
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import aiohttp
import pytest

from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Listen
from odf_node.http.observing import create_observing_app
from odf_node.http.served_node import Live
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode, serving
from support.raw_http import request_of, send_raw, status_of
from support.whole_app import create_whole_app

GOSSIP = "/_odf/v1/gossip"
PUSHES = "/_odf/v1/pushes"
READING = ["/demo.data/refs/head", "/_odf/v1/datasets", "/_odf/v1/health", "/info", "/demo.data/pull"]


class Heard:
    """Counts the gossip that gets through."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def receive(self, bucket: str, body: bytes) -> bytes | None:
        self.bodies.append(body)
        return b"{}"


def problem_of(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head, answer
    assert b"Traceback" not in answer
    return str(json.loads(body)["type"]).removeprefix("urn:odf-node:problem:")


def make_node(tmp_path: Path) -> TestNode:
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("demo.data").add(b"rows"))
    node.put_token()
    return node


async def still_serves(url: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/demo.data/refs/head") as answer:
        return answer.status == 200


@pytest.mark.parametrize("path", READING)
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("10.0.0.7", "[fe80::7]", "me@localhost", "", "localhost, evil.example", "::1"),
    ],
)
@in_loop
async def test_name_that_leads_to_the_loopback_reads_nothing(tmp_path: Path, host: str, path: str) -> None:
    async with make_node(tmp_path).serving() as url:
        answer = await send_raw(url, request_of("GET", path, host=host))
        assert (status_of(answer), problem_of(answer)) == (421, "misdirected")
        assert await still_serves(url)


@in_loop
async def test_target_with_another_name_is_judged_by_it(tmp_path: Path) -> None:
    async with make_node(tmp_path).serving() as url:
        evil = await send_raw(url, request_of("GET", "http://evil.example/info", host="localhost"))
        assert (status_of(evil), problem_of(evil)) == (421, "misdirected")
        own = await send_raw(url, request_of("GET", "http://localhost/info", host="localhost"))
        assert status_of(own) == 200
        for broken in ("http://[evil/info", "//evil.example/info", "http:///info"):
            assert status_of(await send_raw(url, request_of("GET", broken, host="localhost"))) in {400, 404, 421}


@pytest.mark.parametrize("head", ["GET /info HTTP/1.1\r\n", "GET /info HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n"])
@in_loop
async def test_no_name_and_two_names_are_rejected(tmp_path: Path, head: str) -> None:
    async with make_node(tmp_path).serving() as url:
        assert status_of(await send_raw(url, f"{head}Connection: close\r\n\r\n".encode())) == 400
        assert await still_serves(url)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:80", "dev.localhost", "127.8.8.8"])
@in_loop
async def test_names_of_the_loopback_are_answered(tmp_path: Path, host: str) -> None:
    async with make_node(tmp_path).serving() as url:
        assert status_of(await send_raw(url, request_of("GET", "/info", host=host))) == 200


@in_loop
async def test_names_that_the_operator_sets_are_answered(tmp_path: Path) -> None:
    listen = Listen(public_url="https://data.example:8443", hosts="first.machine Second.Machine")
    live = Live(Configuration(listen=listen))
    async with make_node(tmp_path).serving(live=live) as url:
        for host in ("data.example", "data.example:8443", "first.machine", "second.machine:80"):
            assert status_of(await send_raw(url, request_of("GET", "/info", host=host))) == 200
        assert status_of(await send_raw(url, request_of("GET", "/info", host="other.machine"))) == 421


@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "https://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    ],
    ids=str,
)
@in_loop
async def test_page_of_another_origin_changes_nothing_and_does_not_converse(
    tmp_path: Path, page: Mapping[str, str]
) -> None:
    node, heard = make_node(tmp_path), Heard()
    before = [(record.id, record.head) for record in node.store.list_datasets()]
    json_type = {"Content-Type": "application/json"}
    upgrade = {
        "Connection": "Upgrade, close",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "x-odf-smtp-version": "1",
    }
    authorized = {"Authorization": f"Bearer {TOKEN}"}
    async with serving(create_whole_app(node.served, heard)) as url:
        for method, path, headers in (
            ("POST", GOSSIP, json_type),
            ("POST", PUSHES, json_type | authorized),
            ("DELETE", f"{PUSHES}/x", authorized),
            ("PUT", f"{PUSHES}/x/objects/f00", authorized),
            ("GET", "/demo.data/pull", upgrade),
            ("GET", "/new.data/push", upgrade | authorized),
        ):
            answer = await send_raw(url, request_of(method, path, headers={**headers, **page}, body=b"{}"), wait_s=5)
            assert (status_of(answer), problem_of(answer)) == (403, "foreign-page"), (method, path)
        assert heard.bodies == []
        assert await still_serves(url)
    assert [(record.id, record.head) for record in node.store.list_datasets()] == before
    assert node.receiver.received == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@in_loop
async def test_json_under_another_name_is_not_taken(tmp_path: Path, kind: str) -> None:
    """What a form may send without asking: the browser lets any page post these types."""
    node, heard = make_node(tmp_path), Heard()
    async with serving(create_whole_app(node.served, heard)) as url:
        for path, more in ((GOSSIP, {}), (PUSHES, {"Authorization": f"Bearer {TOKEN}"})):
            named = {"Content-Type": kind} if kind else {}
            answer = await send_raw(url, request_of("POST", path, headers=more | named, body=b"{}"))
            assert (status_of(answer), problem_of(answer)) == (415, "media-type")
        assert heard.bodies == []
        assert await still_serves(url)


@in_loop
async def test_answers_open_nothing_to_other_origins(tmp_path: Path) -> None:
    async with make_node(tmp_path).serving() as url, aiohttp.ClientSession() as session:
        for method in ("GET", "OPTIONS", "HEAD"):
            asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
            async with session.request(method, f"{url}/demo.data/refs/head", headers=asked) as answer:
                assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@cache
def bomb() -> bytes:
    return gzip.compress(bytes(100_000_000), compresslevel=1)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "x-gzip", "gzip, gzip", "nonsense"])
@pytest.mark.parametrize("body", [lambda: b"{}", bomb], ids=["none", "a-bomb"])
@in_loop
async def test_body_that_claims_an_encoding_is_not_unpacked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], encoding: str, body: Callable[[], bytes]
) -> None:
    node, heard = make_node(tmp_path), Heard()
    authorized = {"Authorization": f"Bearer {TOKEN}", "Content-Encoding": encoding, "Content-Type": "application/json"}
    async with serving(create_whole_app(node.served, heard)) as url:
        for method, path in (
            ("POST", GOSSIP),
            ("POST", PUSHES),
            ("POST", f"{PUSHES}/x/blocks"),
            ("POST", f"{PUSHES}/x/commit"),
            ("PUT", f"{PUSHES}/x/objects/f00"),
            ("PUT", "/_odf/v1/uploads/x/f00"),
            ("GET", "/demo.data/refs/head"),
        ):
            answer = await send_raw(url, request_of(method, path, headers=authorized, body=body()))
            assert (status_of(answer), problem_of(answer)) == (415, "encoded"), (method, path)
        assert heard.bodies == []
        assert await still_serves(url)
    assert "Traceback" not in capfd.readouterr().err


@in_loop
async def test_figures_name_no_dataset_and_are_not_for_pages(tmp_path: Path) -> None:
    node, live = make_node(tmp_path), Live()
    hidden = Chain("secret.data").add(b"rows")
    node.keep(hidden, published=False)
    app = create_whole_app(node.served, live=live)
    async with serving(app) as url, serving(create_observing_app(live, app)) as watched:
        for path in ("/secret.data/refs/head", f"/{hidden.id}/refs/head", "/secret.data/push", "/metrics"):
            assert status_of(await send_raw(url, request_of("GET", path))) in {401, 404}
        figures = await send_raw(watched, request_of("GET", "/metrics"))
        assert status_of(figures) == 200
        assert b"odf_node_http_requests_total" in figures
        assert b"secret" not in figures
        assert str(hidden.id).encode() not in figures
        foreign = await send_raw(watched, request_of("GET", "/metrics", host="evil.example"))
        assert (status_of(foreign), problem_of(foreign)) == (421, "misdirected")
