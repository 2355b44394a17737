"""Fetching over HTTP from real servers on the loopback, good and bad ones."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from odf_node.ports.sources import (
    Fetched,
    SourceNotFoundError,
    SourceRejectedError,
    SourceTooLargeError,
    SourceUnavailableError,
    UpToDate,
)
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_node.sources.source_state import etag_state, last_modified_state
from odf_node.sources.url import show_url
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStepEthereumLogs,
    FetchStepUrl,
    RequestHeader,
    SourceCachingForever,
    SourceState,
)
from odf_protocol.timestamp import Timestamp
from support.http_server import Server, serving, serving_bytes

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
MODIFIED = Timestamp.parse("2023-05-06T07:08:09Z")
MODIFIED_HEADER = {"Last-Modified": "Sat, 06 May 2023 07:08:09 GMT"}
LIMITS = SourceLimits(size_bytes=100_000, connect_s=60, read_s=60, total_s=200)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def _fetch(
    answer: Handler,
    folder: Path,
    *,
    path: str = "/data.csv",
    state: SourceState | None = None,
    limits: SourceLimits = LIMITS,
    **step: object,
) -> tuple[Fetched | UpToDate, Server]:
    async def run() -> tuple[Fetched | UpToDate, Server]:
        async with serving(answer) as server:
            fetch = FetchStepUrl(url=server.base + path, **step)  # type: ignore[arg-type]
            return await LocalSourceReader(limits=limits).fetch(fetch, state=state, now=NOW, folder=folder), server

    return asyncio.run(run())


def _answering(status: int = 200, text: str = "a,b\n1,2\n", **headers: str) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return answer


def _fetch_raw(reply: bytes, folder: Path, *, then_close: bool = True, limits: SourceLimits = LIMITS) -> object:
    async def run() -> object:
        async with serving_bytes(reply, then_close=then_close) as base:
            step = FetchStepUrl(url=f"{base}/d")
            return await LocalSourceReader(limits=limits).fetch(step, state=None, now=NOW, folder=folder)

    return asyncio.run(run())


def _fails(kind: type[OdfError], match: str, folder: Path, call: Callable[[], object]) -> OdfError:
    with pytest.raises(kind, match=match) as caught:
        call()
    assert list(folder.iterdir()) == []
    assert "\n" not in str(caught.value)
    return caught.value


def test_document_arrives_with_its_etag_as_state(tmp_path: Path) -> None:
    result, server = _fetch(_answering(ETag='"v1"', **MODIFIED_HEADER), tmp_path)
    assert isinstance(result, Fetched)
    assert result.path.read_text() == "a,b\n1,2\n"
    assert result.source_state == etag_state('"v1"')
    assert result.event_time is None
    assert result.name == server.base + "/data.csv"
    assert server.requests[0].headers["User-Agent"].startswith("odf-node/")
    assert "If-None-Match" not in server.requests[0].headers


def test_document_without_etag_has_its_date_as_state_and_event_time(tmp_path: Path) -> None:
    result, _ = _fetch(_answering(**MODIFIED_HEADER), tmp_path)
    assert isinstance(result, Fetched)
    assert result.source_state == last_modified_state(MODIFIED)
    assert result.event_time == MODIFIED


@pytest.mark.parametrize(
    "stated",
    ["Thu, 01 Jan 99999999999 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 99 Jan 2024 00:00:00 GMT"],
)
def test_date_that_no_calendar_has_is_no_version_of_the_document(tmp_path: Path, stated: str) -> None:
    result, _ = _fetch(_answering(Last_Modified=stated), tmp_path)
    assert isinstance(result, Fetched)
    assert (result.source_state, result.event_time) == (None, None)


@pytest.mark.parametrize(
    ("status", "stated", "asked_s"),
    [
        (429, "120", 120),
        (503, "Mon, 01 Jan 2024 00:10:00 GMT", 600),
        (503, "Sun, 31 Dec 2023 00:00:00 GMT", 0),
        (429, "9" * 4_000, 10**9),
        (429, "Fri, 31 Dec 9999 23:59:59 -2359", 10**9),
        (429, "-1", 0),
        (429, "1.5", 0),
        (429, "\u0661\u0662", 0),
        (429, "soon", 0),
        (429, "Mon, 99 Jan 2024 99:99:99 GMT", 0),
        (500, "120", 0),
        (403, "120", 0),
    ],
)
def test_server_that_is_busy_says_for_how_long(tmp_path: Path, status: int, stated: str, asked_s: int) -> None:
    """SCHED-12."""
    call = partial(_fetch, _answering(status, Retry_After=stated), tmp_path)
    error = _fails(SourceUnavailableError, f"answers {status}", tmp_path, call)
    assert isinstance(error, SourceUnavailableError)
    assert error.retry_after_s == asked_s
    assert (f"asks to be left alone for {asked_s} s" in str(error)) == (asked_s > 0)


def test_document_without_version_has_no_state(tmp_path: Path) -> None:
    result, _ = _fetch(_answering(Last_Modified="some day"), tmp_path)
    assert isinstance(result, Fetched)
    assert (result.source_state, result.event_time) == (None, None)


def test_event_time_from_system_time_is_now(tmp_path: Path) -> None:
    result, _ = _fetch(_answering(**MODIFIED_HEADER), tmp_path, event_time=EventTimeSourceFromSystemTime())
    assert isinstance(result, Fetched)
    assert result.event_time == NOW


@pytest.mark.parametrize(
    ("state", "header", "value"),
    [
        (etag_state('"v1"'), "If-None-Match", '"v1"'),
        (last_modified_state(MODIFIED), "If-Modified-Since", "Sat, 06 May 2023 07:08:09 GMT"),
    ],
    ids=["etag", "last-modified"],
)
def test_known_version_is_named_and_304_means_up_to_date(
    tmp_path: Path, state: SourceState, header: str, value: str
) -> None:
    result, server = _fetch(_answering(304, text=""), tmp_path, state=state)
    assert result == UpToDate()
    assert server.requests[0].headers[header] == value


@pytest.mark.parametrize(
    ("state", "headers"),
    [
        (etag_state('"v1"'), {"ETag": '"v1"'}),
        (replace(last_modified_state(MODIFIED), value="2023-05-06T09:08:09.000+02:00"), MODIFIED_HEADER),
    ],
    ids=["etag", "last-modified-in-another-zone"],
)
def test_server_that_ignores_conditions_is_up_to_date_by_its_version(
    tmp_path: Path, state: SourceState, headers: dict[str, str]
) -> None:
    result, _ = _fetch(_answering(**headers), tmp_path, state=state)
    assert result == UpToDate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "state",
    [
        SourceState(source_name="default", kind="odf/etag", value='"old"'),
        SourceState(source_name="default", kind="other", value='"v1"'),
        SourceState(source_name="default", kind="odf/last-modified", value="no time"),
    ],
    ids=["other-version", "unknown-kind", "unreadable-time"],
)
def test_other_or_unknown_state_brings_the_document(tmp_path: Path, state: SourceState) -> None:
    result, _ = _fetch(_answering(ETag='"v1"'), tmp_path, state=state)
    assert isinstance(result, Fetched)


def test_source_cached_for_ever_is_asked_once(tmp_path: Path) -> None:
    result, server = _fetch(_answering(), tmp_path, cache=SourceCachingForever(), state=etag_state("x"))
    assert (result, server.requests) == (UpToDate(), [])
    result, _ = _fetch(_answering(), tmp_path, cache=SourceCachingForever())
    assert isinstance(result, Fetched)


def test_declared_headers_are_sent(tmp_path: Path) -> None:
    _, server = _fetch(_answering(), tmp_path, headers=(RequestHeader(name="X-Key", value="secret"),))
    assert server.requests[0].headers["X-Key"] == "secret"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, SourceNotFoundError),
        (410, SourceNotFoundError),
        (500, SourceUnavailableError),
        (403, SourceUnavailableError),
        (304, SourceUnavailableError),
        (206, SourceUnavailableError),
    ],
)
def test_answer_that_is_not_the_document_is_named(tmp_path: Path, status: int, kind: type[OdfError]) -> None:
    _fails(kind, f"/data.csv: the server answers {status}", tmp_path, lambda: _fetch(_answering(status), tmp_path))


def test_redirects_are_followed_with_headers_for_the_first_host_only(tmp_path: Path) -> None:
    async def run() -> tuple[Server, Server, object]:
        async with serving(_answering(text="there")) as other:

            async def answer(request: web.Request) -> web.StreamResponse:
                location = "/b" if request.path == "/a" else f"{other.base}/c"
                raise web.HTTPFound(location)

            async with serving(answer) as first:
                step = FetchStepUrl(url=f"{first.base}/a", headers=(RequestHeader(name="X-Key", value="secret"),))
                reader = LocalSourceReader(limits=LIMITS)
                return first, other, await reader.fetch(step, state=None, now=NOW, folder=tmp_path)

    first, other, result = asyncio.run(run())
    assert isinstance(result, Fetched)
    assert result.path.read_text() == "there"
    assert [request.headers.get("X-Key") for request in first.requests] == ["secret", "secret"]
    assert other.requests[0].headers.get("X-Key") is None


@pytest.mark.parametrize("is_led", [False, True], ids=["asked-first", "led-there"])
def test_passwords_of_the_user_for_other_programs_are_not_sent_ing_22(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_led: bool
) -> None:
    """What a server may read only by this user's ``.netrc`` would be published as rows."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    async def run() -> Server:
        async with serving(_answering(text="there")) as other:

            async def answer(_: web.Request) -> web.StreamResponse:
                raise web.HTTPFound(f"{other.base}/c")

            async with serving(answer) as first:
                step = FetchStepUrl(url=(first if is_led else other).base)
                await LocalSourceReader(limits=LIMITS).fetch(step, state=None, now=NOW, folder=tmp_path)
                return other

    (asked,) = asyncio.run(run()).requests
    assert "Authorization" not in asked.headers


@pytest.mark.parametrize(("host", "is_used"), [("data.example", True), ("127.0.0.1", False)])
def test_proxy_of_the_environment_is_asked_with_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, is_used: bool
) -> None:
    async def run() -> Server:
        async with serving(_answering(text="there")) as proxy:
            monkeypatch.setenv("http_proxy", proxy.base.replace("://", "://me:hunter2@"))
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            step = FetchStepUrl(url=f"http://{host}:9/rows.csv")
            with nullcontext() if is_used else pytest.raises(SourceUnavailableError):
                await LocalSourceReader(limits=LIMITS).fetch(step, state=None, now=NOW, folder=tmp_path)
            return proxy

    asked = asyncio.run(run()).requests
    assert [each.headers["Proxy-Authorization"] for each in asked] == ["Basic bWU6aHVudGVyMg=="] * is_used
    assert [each.headers["Host"] for each in asked] == ["data.example:9"] * is_used


def test_redirect_loop_ends(tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        raise web.HTTPMovedPermanently("/data.csv")

    error = _fails(SourceRejectedError, "more than 10 redirects", tmp_path, lambda: _fetch(answer, tmp_path))
    assert isinstance(error, SourceRejectedError)
    assert error.rule == "redirects"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://host/x", "gopher://host/"])
def test_redirect_to_another_scheme_is_rejected(tmp_path: Path, location: str) -> None:
    reply = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
    _fails(SourceRejectedError, "which is not HTTP", tmp_path, lambda: _fetch_raw(reply, tmp_path))


def test_truncated_answer_is_not_a_document(tmp_path: Path) -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this"
    _fails(SourceUnavailableError, "broke off", tmp_path, lambda: _fetch_raw(reply, tmp_path))


def test_truncated_chunked_answer_is_not_a_document(tmp_path: Path) -> None:
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    _fails(SourceUnavailableError, "broke off", tmp_path, lambda: _fetch_raw(reply, tmp_path))


def test_nothing_beyond_the_stated_length_is_taken(tmp_path: Path) -> None:
    # Whether the surplus is noticed depends on when it arrives.
    try:
        result = _fetch_raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more", tmp_path)
    except SourceUnavailableError:
        return
    assert isinstance(result, Fetched)
    assert result.path.read_bytes() == b"hello"


@pytest.mark.parametrize(
    "reply",
    [b"HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\n", b"SSH-2.0-OpenSSH\r\n\r\n", b""],
    ids=["length", "protocol", "nothing"],
)
def test_answer_that_is_not_http_is_named(tmp_path: Path, reply: bytes) -> None:
    _fails(SourceUnavailableError, "no usable answer", tmp_path, lambda: _fetch_raw(reply, tmp_path))


def test_answer_announced_as_too_long_is_not_begun(tmp_path: Path) -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nx"
    _fails(SourceTooLargeError, "limit size_bytes", tmp_path, lambda: _fetch_raw(reply, tmp_path))


def test_endless_answer_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    _fails(SourceTooLargeError, "more than the 100000", tmp_path, lambda: _fetch(answer, tmp_path))


def test_packed_answer_is_bounded_by_what_it_unpacks_to(tmp_path: Path) -> None:
    import gzip

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=gzip.compress(b"0" * 10_000_000), headers={"Content-Encoding": "gzip"})

    _fails(SourceTooLargeError, "size_bytes", tmp_path, lambda: _fetch(answer, tmp_path))


def test_silent_server_is_given_up(tmp_path: Path) -> None:
    limits = replace(LIMITS, read_s=0.1)
    _fails(
        SourceUnavailableError,
        "did not answer in time",
        tmp_path,
        lambda: _fetch_raw(b"", tmp_path, then_close=False, limits=limits),
    )


def test_server_that_stops_in_the_middle_is_given_up(tmp_path: Path) -> None:
    # Longer than the answer's first bytes can take, in one process, on a machine that others use too.
    limits = replace(LIMITS, read_s=2)
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this"
    _fails(
        SourceUnavailableError,
        "broke off",
        tmp_path,
        lambda: _fetch_raw(reply, tmp_path, then_close=False, limits=limits),
    )


def test_server_that_trickles_is_given_up_after_the_whole_time(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    limits = replace(LIMITS, total_s=0.2)
    _fails(
        SourceUnavailableError,
        r"no complete answer within 0\.2 s",
        tmp_path,
        lambda: _fetch(answer, tmp_path, limits=limits),
    )


def test_closed_port_is_named(tmp_path: Path) -> None:
    step = FetchStepUrl(url="http://127.0.0.1:1/x?key=secret")
    error = _fails(
        SourceUnavailableError,
        "no server answers there",
        tmp_path,
        lambda: asyncio.run(LocalSourceReader(limits=LIMITS).fetch(step, state=None, now=NOW, folder=tmp_path)),
    )
    assert "secret" not in str(error)


@pytest.mark.parametrize("url", ["http://", "http:///x", "http://[::1", "http://host:notaport/", "https://\x00/"])
def test_url_that_is_none_is_named(tmp_path: Path, url: str) -> None:
    step = FetchStepUrl(url=url)
    with pytest.raises((MalformedError, SourceUnavailableError)):
        asyncio.run(LocalSourceReader(limits=LIMITS).fetch(step, state=None, now=NOW, folder=tmp_path))


def test_header_of_several_lines_is_rejected(tmp_path: Path) -> None:
    _fails(
        MalformedError,
        "headers of one line",
        tmp_path,
        lambda: _fetch(_answering(), tmp_path, headers=(RequestHeader(name="X", value="a\r\nHost: b"),)),
    )


def test_unsupported_kinds_of_sources_are_named(tmp_path: Path) -> None:
    reader = LocalSourceReader()
    for step, match in (
        (FetchStepEthereumLogs(chain_id=1), "EthereumLogs"),
        (FetchStepUrl(url="gopher://h/x"), "gopher"),
        (FetchStepUrl(url="http://h/x", event_time=EventTimeSourceFromPath(pattern="x")), "FromPath"),
    ):
        with pytest.raises(UnsupportedError, match=match):
            asyncio.run(reader.fetch(step, state=None, now=NOW, folder=tmp_path))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host:8/p/q?key=1#x", "https://host:8/p/q?..."),
        ("http://host", "http://host"),
        ("http://host/a@b", "http://host/a@b"),
        ("file:///a/b", "file:///a/b"),
    ],
)
def test_shown_url_has_no_secrets(url: str, shown: str) -> None:
    assert show_url(url) == shown
