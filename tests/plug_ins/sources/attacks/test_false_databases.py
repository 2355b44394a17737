"""PostgreSQL servers that are none: what they cost is bounded, what they learn is nothing, and it is told (ING-31)."""

import asyncio
import resource
import socket
import struct
import time
from pathlib import Path

import pytest

from odf_node.ports.sources import SourceUnavailableError
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import OdfError
from odf_protocol.events import FetchStepUrl
from odf_protocol.timestamp import Timestamp
from support.false_postgres import CLEARTEXT_PASSWORD, SIGNED_IN, false_postgres, read_startup

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
SECRET = "s3cret"


def fetch(port: int, folder: Path, *, more: str = "", **limits: float) -> None:
    url = f"postgresql://reader:{SECRET}@127.0.0.1:{port}/shop?table=t&by=id{more}"
    reader = LocalSourceReader(limits=SourceLimits(**limits))
    asyncio.run(reader.fetch(FetchStepUrl(url=url), state=None, now=NOW, folder=folder))


def no_progress(connection: socket.socket) -> None:
    while connection.recv(8192):
        pass


def say_nothing_later(connection: socket.socket) -> None:
    read_startup(connection)
    connection.sendall(SIGNED_IN)
    no_progress(connection)


def say_noise(connection: socket.socket) -> None:
    connection.recv(8)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)


def close(connection: socket.socket) -> None:
    read_startup(connection)
    connection.sendall(SIGNED_IN)
    connection.recv(8192)


def send_one_endless_row(connection: socket.socket) -> None:
    read_startup(connection)
    connection.sendall(SIGNED_IN)
    connection.recv(8192)
    connection.sendall(b"C" + struct.pack("!i", 10) + b"BEGIN\0" + b"Z" + struct.pack("!i", 5) + b"T")
    connection.recv(8192)
    connection.sendall(b"T" + struct.pack("!ih", 26, 1) + b"c\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0))
    connection.sendall(b"D" + struct.pack("!ihi", 0x7FFFFFF0, 1, 0x7FFFFFE6))
    piece = b"x" * 1024 * 1024
    while True:
        connection.sendall(piece)


def send_endless_notices(connection: socket.socket) -> None:
    read_startup(connection)
    connection.sendall(SIGNED_IN)
    connection.recv(8192)
    text = b"SWARNING\0C01000\0M" + b"x" * 60000 + b"\0\0"
    while True:
        connection.sendall(b"N" + struct.pack("!i", 4 + len(text)) + text)


def repeat_the_password(connection: socket.socket) -> None:
    read_startup(connection)
    text = f"SFATAL\0C28000\0Mhello {SECRET}\x1b[2J\0\0".encode()
    connection.sendall(b"E" + struct.pack("!i", 4 + len(text)) + text)


@pytest.mark.parametrize(
    ("serve", "stated"),
    [
        (no_progress, "connection timeout expired|sent nothing for 3 s"),
        (say_nothing_later, "sent nothing for 3 s"),
        (say_noise, "invalid response"),
        (close, "closed the connection"),
        (send_one_endless_row, "cannot allocate memory"),
        (send_endless_notices, "sent nothing for 3 s"),
        (repeat_the_password, "hello "),
    ],
)
def test_false_server_is_bounded_and_told(serve, stated: str, tmp_path: Path) -> None:
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with false_postgres(serve) as port, pytest.raises(OdfError, match=stated) as caught:
        fetch(port, tmp_path, connect_s=2.0, answer_s=3.0, total_s=60.0)
    assert SECRET not in str(caught.value)
    assert str(caught.value).isprintable()
    assert time.monotonic() - began < 60
    # The greatest of all children of this process so far: a larger one may have run for another test before.
    greatest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert greatest == before or greatest < 1_200_000  # kB
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", ["", "&sslmode=disable", "&sslmode=allow", "&sslmode=prefer"])
def test_password_is_not_said_aloud_on_a_line_that_anybody_reads(more: str, tmp_path: Path) -> None:
    heard = bytearray()

    def ask(connection: socket.socket) -> None:
        read_startup(connection)
        connection.sendall(CLEARTEXT_PASSWORD)
        while chunk := connection.recv(8192):
            heard.extend(chunk)

    with false_postgres(ask) as port, pytest.raises(SourceUnavailableError, match="cleartext"):
        fetch(port, tmp_path, more=more)
    assert SECRET.encode() not in heard


def test_server_that_cannot_encrypt_is_rejected_where_that_is_asked_for(tmp_path: Path) -> None:
    with (
        false_postgres(lambda connection: void(read_startup(connection))) as port,
        pytest.raises(SourceUnavailableError, match="does not support SSL"),
    ):
        fetch(port, tmp_path, more="&sslmode=require")


def void(_: object) -> None:
    return None
