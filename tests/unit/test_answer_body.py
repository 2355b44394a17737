"""Bodies of answers in memory that is used again: whole, bounded, and their connection is as good as before."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from yarl import URL

from odf_node.adapters import answer_body
from odf_node.adapters.answer_body import DirectBody, StreamedBody, open_body
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.byte_rate import ByteRate
from support.daemons import make_certificate
from support.event_loop import in_loop
from support.hostile_peer import answer, hostile_peer

KIB = 1024
BODY = os.urandom(1_500_000)
STALL_S = 200.0


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_body, "DIRECT_BYTES", 100 * KIB)
    monkeypatch.setattr(answer_body, "PIECE_BYTES", 64 * KIB)


async def fetch(client: HttpClient, url: str, rate: ByteRate | None = None) -> tuple[bytes, type]:
    """Get a body as a download does; return it with the kind of its reader."""
    read = bytearray()
    async with client.open("GET", URL(url)) as got:
        with open_body(got, rate=rate or ByteRate(), stall_s=STALL_S) as body:
            while data := await body.read():
                read += data
            return bytes(read), type(body)


async def serve_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
    writer.close()


@in_loop
async def test_next_request_goes_over_the_connection_of_a_body_that_was_taken_over() -> None:
    accepted: list[object] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        await serve_body(reader, writer)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, HttpClient(ClientSettings()) as client:
        for _ in range(3):
            host, port = server.sockets[0].getsockname()
            assert await fetch(client, f"http://{host}:{port}/") == (BODY, DirectBody)
    assert len(accepted) == 1


@in_loop
async def test_body_arrives_over_an_encrypted_connection(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(certificate, key)
    ours = ssl.create_default_context(cafile=str(certificate))
    loop = asyncio.get_running_loop()
    async with await asyncio.start_server(serve_body, "127.0.0.1", 0, ssl=theirs) as server:
        transport, _ = await loop.create_connection(
            asyncio.Protocol, *server.sockets[0].getsockname(), ssl=ours, server_hostname="localhost"
        )
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY)
        body = DirectBody(transport, [], len(head) + len(BODY), stall_s=STALL_S)
        transport.set_protocol(body)
        transport.write(b"GET / HTTP/1.1\r\n\r\n")
        read = bytearray()
        while data := await body.read():
            read += data
        transport.close()
    assert read == head + BODY


@pytest.mark.parametrize(
    ("size_bytes", "rate"),
    [
        pytest.param(100 * KIB - 1, ByteRate(), id="small"),
        pytest.param(300 * KIB, ByteRate(100_000_000), id="at-a-limited-rate"),
    ],
)
@in_loop
async def test_other_bodies_are_left_to_the_client(size_bytes: int, rate: ByteRate) -> None:
    async with (
        hostile_peer({"/": answer(BODY[:size_bytes])}) as peer,
        HttpClient(ClientSettings()) as client,
    ):
        assert await fetch(client, f"{peer.url}/", rate) == (BODY[:size_bytes], StreamedBody)


@asynccontextmanager
async def direct_body(
    left_bytes: int, early: list[bytes] | None = None
) -> AsyncIterator[tuple[DirectBody, socket.socket]]:
    """A body at one end of a real connection, and the other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    body = DirectBody(transport, early or [], left_bytes, stall_s=STALL_S)
    transport.set_protocol(body)
    try:
        yield body, theirs
    finally:
        transport.abort()
        theirs.close()


async def send_until_full(theirs: socket.socket, data: memoryview) -> int:
    """Send until nothing goes out although the other side had its turns; return how much went out."""
    sent = 0
    turns = 0
    while sent < len(data) and turns < 100:
        await asyncio.sleep(0)
        try:
            sent += theirs.send(data[sent : sent + 16 * KIB])
            turns = 0
        except BlockingIOError:
            turns += 1
    return sent


@in_loop
async def test_sender_waits_for_a_reader_that_does_not_read() -> None:
    async with direct_body(len(BODY)) as (body, theirs):
        sent = await send_until_full(theirs, memoryview(BODY))
        assert sent < len(BODY)
        # All pieces are full and nothing is lent; the rest waits in the system.
        assert [len(await body.read()) for _ in range(3)] == [64 * KIB] * 3


@in_loop
async def test_lent_piece_stays_as_it_is_until_two_more_were_asked_for() -> None:
    async with direct_body(len(BODY)) as (body, theirs):
        sent = await send_until_full(theirs, memoryview(BODY))
        position = 0
        before = memoryview(b"")
        while position < sent - 64 * KIB:
            piece = memoryview(await body.read())
            sent += await send_until_full(theirs, memoryview(BODY)[sent:])  # what is free is filled
            assert BODY[position - len(before) : position] == before
            assert BODY[position : position + len(piece)] == piece
            position += len(piece)
            before = piece


@in_loop
async def test_part_of_a_piece_is_given_while_its_sender_pauses() -> None:
    async with direct_body(len(BODY)) as (body, theirs):
        theirs.send(BODY[:10])
        assert await body.read() == BODY[:10]
        theirs.send(BODY[10:30])
        assert await body.read() == BODY[10:30]


@in_loop
async def test_what_arrived_before_the_end_of_the_connection_is_given_then_nothing() -> None:
    async with direct_body(len(BODY), [b"early", b"bird"]) as (body, theirs):
        theirs.send(b"late")
        theirs.close()
        assert [bytes(await body.read()) for _ in range(4)] == [b"early", b"bird", b"late", b""]
        assert body.is_lost
        assert not body.is_whole


@in_loop
async def test_bytes_behind_the_body_are_not_taken() -> None:
    async with direct_body(5) as (body, theirs):
        theirs.send(b"12345678")
        assert await body.read() == b"12345"
        assert body.is_whole
        assert await body.read() == b""
