"""Requests that no client would send: answered with a problem or cut, never a fault, and others are served (EX-72)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odf_node.http.served_node import Live
from odf_protocol.multihash import Multihash
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode, serving
from support.raw_http import connected, request_of, send_raw, status_of
from support.whole_app import create_whole_app

ROWS = bytes(range(256)) * 100
OBJECT = f"/demo.data/data/{Multihash.of_sha3_256(ROWS)}"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "x-odf-smtp-version": "1",
}
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def node_at(tmp_path: Path, live: Live) -> AsyncIterator[str]:
    node = TestNode.create(tmp_path)
    node.keep(Chain("demo.data").add(ROWS))
    node.put_token()
    before = [(record.id, record.head) for record in node.store.list_datasets()]
    async with serving(create_whole_app(node.served, live=live)) as url:
        yield url
        assert status_of(await send_raw(url, request_of("GET", "/demo.data/refs/head"))) == 200
    assert [(record.id, record.head) for record in node.store.list_datasets()] == before
    assert "odf_node_faults_total 0.0\n" in live.metrics.render()
    node.store.close()


async def send_together(url: str, messages: list[bytes], *, wait_s: float) -> list[bytes]:
    """Send each on a connection of its own, eight of them from one address; give the answers."""
    sources = [f"127.0.0.{2 + number // 8}" for number in range(len(messages))]
    sending = (
        send_raw(url, each, wait_s=wait_s, source=source) for each, source in zip(messages, sources, strict=True)
    )
    return list(await asyncio.gather(*sending))


def routes() -> list[tuple[str, str]]:
    """Every route of the node, with its parameters."""
    app = create_whole_app(TestNode.create(Path("/nonexistent")).served)
    return sorted({(route.method, route.resource.canonical) for route in app.router.routes() if route.resource})


ROUTES = routes()
ODD = ["", ".", "..", "%2e%2e", "%2F", "%00", "%", "%ff%fe", "a%20b", "did:odf:", "did:odf:fed01", "f1620", "f1620zz"]
ODD += ["demo.data", "DEMO.data", str(Multihash.of_sha3_256(ROWS)), "head", "0", "-1", "9" * 400, "\u00e9", "a" * 3000]
VALUES = ["0", "-1", "9" * 18, "9" * 400, "x", "", "1&after=2", "%00", "1.5", "\u0661"]
HEADERS = {
    "Range": ["bytes=0-", "bytes=" + "0-1," * 2000 + "1-2", "bytes=9-1", "bytes=-" + "9" * 300, "lines=1-2", "bytes"],
    "If-None-Match": ["*", '"', 'W/"x"', ",".join(['"a"'] * 500)],
    "If-Range": ["x", '"'],
    "Authorization": ["Bearer", "Bearer " + "a" * 4000, "Basic eA==", "Bearer \u00e9", f"Bearer {TOKEN}"],
    "Signature-Input": ["x", "sig=()", 'sig=("@method");keyid="did:key:z"', "sig=" + "(" * 500],
    "Signature": ["x", "sig=:AA==:", "sig=:" + "A" * 500],
    "Content-Type": ["application/json", "application/json; charset=none", "application/json;" + ";" * 500, "x", "/"],
    "Content-Encoding": ["gzip", "br", "\u00e9"],
    "Content-Digest": ["x", "sha-256=:AA==:"],
    "Content-Length": ["-1", "9" * 30, "x", "5, 5", "0"],
    "Transfer-Encoding": ["chunked", "gzip, chunked", "chunked, chunked", "identity", "x"],
    "Expect": ["100-continue", "x"],
    "Cookie": ["; ".join(f"c{number}=v" for number in range(500)), "=;=;="],
    "Origin": ["http://localhost", "null"],
    "Upgrade": ["websocket", "h2c"],
    "Connection": ["Upgrade", "close", "keep-alive, x"],
    "Sec-WebSocket-Key": ["AAAAAAAAAAAAAAAAAAAAAA==", "x"],
    "Sec-WebSocket-Version": ["13", "99"],
    "Sec-WebSocket-Extensions": ["permessage-deflate; server_max_window_bits=99", "x;" * 300],
    "x-odf-smtp-version": ["1", "2", ""],
    "X-Request-Id": ["x" * 3000, "\u00e9"],
}
BODIES = [
    b"",
    b"{}",
    b"null",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"\xff\xfe",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"zz\r\n",
]
BODIES += [
    b'{"dataset_id":"did:odf:fed01","name":"x","head":{"sequence_number":-1,"block_hash":""},"signed_head":null}'
]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request that begins like one of a route."""
    method, canonical = draw(st.sampled_from(ROUTES))
    method = draw(
        st.sampled_from([method, "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
    )
    target = "/".join(draw(st.sampled_from(ODD)) if part.startswith("{") else part for part in canonical.split("/"))
    if draw(st.booleans()):
        name = draw(st.sampled_from(["after", "upto", "skip", "number", "position", "wait_s", "ask", "x"]))
        target += f"?{name}={draw(st.sampled_from(VALUES))}"
    target = draw(st.sampled_from(["", "http://localhost", "//"])) + target
    chosen = draw(st.lists(st.sampled_from(sorted(HEADERS)), max_size=4, unique=True))
    fields = [("Host", "localhost"), *((name, draw(st.sampled_from(HEADERS[name]))) for name in chosen)]
    body = draw(st.sampled_from(BODIES))
    if body and "Content-Length" not in chosen and "Transfer-Encoding" not in chosen:
        fields.append(("Content-Length", str(len(body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(requests(), min_size=50, max_size=50))
def test_no_request_is_a_fault(tmp_path_factory: pytest.TempPathFactory, batch: list[bytes]) -> None:
    live = Live()

    async def run() -> list[bytes]:
        async with node_at(tmp_path_factory.mktemp("home"), live) as url:
            return await send_together(url, batch, wait_s=0.4)

    for sent, answer in zip(batch, asyncio.run(run()), strict=True):
        assert b"Traceback" not in answer
        assert status_of(answer) not in {500, 501, 502}, sent


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(st.binary(max_size=200), min_size=48, max_size=48))
@example(
    sent=[
        b"\r\n" * 1000,
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02",
        b"\0",
    ]
)
def test_noise_is_no_fault(tmp_path_factory: pytest.TempPathFactory, sent: list[bytes]) -> None:
    async def run() -> list[bytes]:
        async with node_at(tmp_path_factory.mktemp("home"), Live()) as url:
            return await send_together(url, [each + b"\r\n\r\n" for each in sent], wait_s=0.3)

    assert all(status_of(answer) in {0, 400, 404, 405, 421} for answer in asyncio.run(run()))


PUSH = f"POST /_odf/v1/pushes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
PUSH += b"Content-Type: application/json\r\n"
ATTACKS = {
    "headers-of-a-megabyte": b"GET /info HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "ten-thousand-headers": b"GET /info HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 10_000 + b"\r\n",
    "a-line-of-a-megabyte": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "many-cookies": request_of("GET", "/info", headers={"Cookie": "; ".join(f"c{n}=v" for n in range(900))}),
    "two-lengths": PUSH + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "length-and-chunks": PUSH + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    b"\r\n0\r\n\r\nGET /info HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "chunks-in-another-coding": PUSH + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "chunk-of-a-petabyte": PUSH + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFF\r\nx",
    "chunk-without-size": PUSH + b"Transfer-Encoding: chunked\r\n\r\nnope\r\nx",
    "folded-header": b"GET /info HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "bare-line-feeds": b"GET /info HTTP/1.1\nHost: localhost\n\n",
    "space-before-colon": b"GET /info HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "trace": request_of("TRACE", "/info", headers=AUTHORIZED),
    "connect": b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n",
    "dots": request_of("GET", "/demo.data/data/../../../etc/passwd"),
    "encoded-dots": request_of("GET", "/demo.data/data/%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
    "encoded-slash-in-the-name": request_of("GET", "/demo.data%2Frefs/refs/head"),
}


@in_loop
async def test_attack_on_the_framing_is_answered_or_cut(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with node_at(tmp_path / "home", Live()) as url:
        answers = await send_together(url, [*ATTACKS.values()], wait_s=2)
        for name, answer in zip(ATTACKS, answers, strict=True):
            assert status_of(answer) in {0, 200, 400, 401, 403, 404, 405, 413, 414, 421, 431}, name
            assert answer.count(b"HTTP/1.1 ") <= 1, name  # nothing is taken for a second request
            assert b"root:" not in answer, name
            assert TOKEN.encode() not in answer, name
            assert b"Traceback" not in answer, name
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("parts", [2, 2_000])
@in_loop
async def test_ranges_by_the_thousand_give_the_object_once(tmp_path: Path, parts: int) -> None:
    async with node_at(tmp_path / "home", Live()) as url:
        asked = "bytes=" + ",".join(f"{number}-{number + 1}" for number in range(parts))[:8_000]
        answer = await send_raw(url, request_of("GET", OBJECT, headers={"Range": asked}))
        assert status_of(answer) in {200, 400}
        assert len(answer) < len(ROWS) + 2_000


@in_loop
async def test_pipelined_requests_are_answered_in_order_and_bounded(tmp_path: Path) -> None:
    one = b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with node_at(tmp_path / "home", Live()) as url:
        answer = await send_raw(url, one * 200 + request_of("GET", "/demo.data/refs/head"), wait_s=30)
        assert answer.count(b"HTTP/1.1 200") == 201
        async with connected(url, source="127.0.0.66") as (_, writer):
            # Answers that nobody reads: no more is taken in than there is room for.
            async def flood() -> None:
                while True:
                    writer.write(one * 100)
                    await writer.drain()

            with pytest.raises((TimeoutError, ConnectionError)):
                async with asyncio.timeout(1):
                    await flood()
            writer.transport.abort()  # the node would wait its thirty seconds for somebody who reads


@in_loop
async def test_body_without_end_is_cut_at_its_limit(tmp_path: Path) -> None:
    fields = {"Content-Type": "application/json", "Transfer-Encoding": "chunked", **AUTHORIZED}
    async with node_at(tmp_path / "home", Live()) as url, connected(url) as (reader, writer):
        writer.write(request_of("POST", "/_odf/v1/pushes", headers=fields))

        async def flood() -> None:
            chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
            while True:
                writer.write(chunk)
                await writer.drain()

        flooding = asyncio.create_task(flood())
        async with asyncio.timeout(30):
            assert b" 413 " in await reader.readline()
        flooding.cancel()
        await asyncio.wait([flooding])


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(b"\x89\x80\0\0\0\0" * 50_000, id="pings"),
        pytest.param(b"\x8a\x80\0\0\0\0" * 50_000, id="pongs"),
        pytest.param(b"\x01\xff\x00\x00\x00\xff\xff\xff\xff\xff\0\0\0\0", id="frame-of-a-terabyte"),
        pytest.param((b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * 50_000), id="fragments-without-end"),
        pytest.param(b"\xf1\x80\0\0\0\0", id="reserved-bits"),
        pytest.param(b"\x81\x01a", id="not-masked"),
        pytest.param(b"\x81\x82\0\0\0\0\xff\xfe", id="no-text"),
        pytest.param(b"\x88\x81\0\0\0\0x", id="close-of-one-byte"),
        pytest.param(b"\xff" * 1000, id="noise"),
    ],
)
@in_loop
async def test_frames_of_a_conversation_that_are_none_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frames: bytes
) -> None:
    monkeypatch.setattr("odf_smart.served_sockets.FIRST_MESSAGE_S", 0.3)
    monkeypatch.setattr("odf_smart.served_sockets.CLOSE_S", 0.3)
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "localhost", **UPGRADE}.items())
    async with node_at(tmp_path / "home", Live()) as url:
        answer = await send_raw(url, f"GET /demo.data/pull HTTP/1.1\r\n{head}\r\n".encode() + frames, wait_s=30)
        assert status_of(answer) == 101


@in_loop
async def test_upload_that_stops_half_way_keeps_nobody_waiting(tmp_path: Path) -> None:
    fields = {"Content-Type": "application/json", "Content-Length": "1000", **AUTHORIZED}
    async with node_at(tmp_path / "home", Live()) as url:
        async with connected(url) as (_, writer):
            writer.write(request_of("POST", "/_odf/v1/pushes", headers=fields) + b'{"dataset_id":')
            await writer.drain()
            assert status_of(await send_raw(url, request_of("GET", "/demo.data/refs/head"))) == 200
        # It is gone; what it began is no fault.
        assert status_of(await send_raw(url, request_of("GET", "/demo.data/refs/head"))) == 200


@pytest.mark.parametrize("path", ["/_odf/v1/pushes", "/_odf/v1/pushes/x/blocks"])
@in_loop
async def test_chunks_that_go_wrong_later_are_the_callers_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("odf_node.http.bodies.STALL_S", 1.0)
    fields = {"Content-Type": "application/json", "Transfer-Encoding": "chunked", **AUTHORIZED}
    live = Live()
    async with node_at(tmp_path / "home", live) as url, connected(url) as (reader, writer):
        writer.write(request_of("POST", path, headers=fields) + b"2\r\n{}\r\n")
        await writer.drain()
        await asyncio.sleep(0.3)
        writer.write(b"nonsense\r\n")
        async with asyncio.timeout(20):
            answer = await reader.read()
        assert status_of(answer) in {400, 404, 408}
        assert b"Traceback" not in answer
