"""Sources that send a byte now and then, for ever: left at the limit of time, whatever rate this node keeps to.

Source: DAEMON-13 in ``spec/daemon.md``, ING-22 and ING-32 in ``spec/plug-ins/sources.md``.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from odf_node.byte_rate import ByteRate
from odf_node.ports.sources import Fetched, SourceUnavailableError
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.events import FetchStepUrl
from odf_protocol.exchange.limits import MIN_SET_RATE_BYTES_PER_S
from odf_protocol.timestamp import Timestamp

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
PAUSE_S = 0.05
HONEST = b"x" * 4 * MIN_SET_RATE_BYTES_PER_S
Serve = Callable[[socket.socket, threading.Event], None]


def trickle(connection: socket.socket, text: bytes, stopped: threading.Event) -> None:
    while not stopped.wait(PAUSE_S):
        connection.sendall(text)


def http_body(connection: socket.socket, stopped: threading.Event) -> None:
    connection.recv(8192)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    trickle(connection, b"x", stopped)


def http_head(connection: socket.socket, stopped: threading.Event) -> None:
    connection.recv(8192)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    trickle(connection, b"x", stopped)


def ftp_welcome(connection: socket.socket, stopped: threading.Event) -> None:
    connection.sendall(b"220-")
    trickle(connection, b"x", stopped)


def ftp_file(connection: socket.socket, stopped: threading.Event) -> None:
    """Give a file of which a byte comes now and then."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        stated = {b"USER": b"230 in", b"TYPE": b"200 ok", b"MDTM": b"500 no", b"SIZE": b"500 no"}
        stated[b"EPSV"] = b"229 Entering (|||%d|)" % listener.getsockname()[1]
        connection.sendall(b"220 hello\r\n")
        lines = connection.makefile("rb")
        for line in lines:
            command = line.split()[0]
            if command == b"PASV":
                one, two = divmod(listener.getsockname()[1], 256)
                connection.sendall(b"227 Entering (127,0,0,1,%d,%d)\r\n" % (one, two))
            elif command == b"RETR":
                connection.sendall(b"150 it comes\r\n")
                with closing(listener.accept()[0]) as data:
                    trickle(data, b"x", stopped)
            else:
                connection.sendall(stated.get(command, b"500 no") + b"\r\n")


def honest(connection: socket.socket, _stopped: threading.Event) -> None:
    connection.recv(8192)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(HONEST), HONEST))


@contextmanager
def serving(serve: Serve) -> Iterator[int]:
    stopped = threading.Event()

    def accept() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                serve(connection, stopped)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stopped.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def fetch(url: str, folder: Path, rate: int, total_s: float) -> Fetched:
    reader = LocalSourceReader(limits=SourceLimits(total_s=total_s), rate=ByteRate(rate))
    found = asyncio.run(reader.fetch(FetchStepUrl(url=url), state=None, now=NOW, folder=folder))
    assert isinstance(found, Fetched)
    return found


@pytest.mark.timeout(60)
@pytest.mark.parametrize("rate", [0, MIN_SET_RATE_BYTES_PER_S])
@pytest.mark.parametrize(
    ("scheme", "serve"), [("http", http_body), ("http", http_head), ("ftp", ftp_welcome), ("ftp", ftp_file)]
)
def test_source_that_never_ends_is_left_whatever_rate_is_set_daemon_13(
    tmp_path: Path, scheme: str, serve: Serve, rate: int
) -> None:
    with serving(serve) as port, pytest.raises(SourceUnavailableError, match="no complete answer within 3 s"):
        fetch(f"{scheme}://127.0.0.1:{port}/a.csv", tmp_path, rate, 3.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(60)
def test_source_that_this_node_reads_slowly_is_read_to_its_end_daemon_13(tmp_path: Path) -> None:
    """It takes four seconds at the rate, of which none are the server's."""
    with serving(honest) as port:
        found = fetch(f"http://127.0.0.1:{port}/a.csv", tmp_path, MIN_SET_RATE_BYTES_PER_S, 2.0)
    assert found.path.read_bytes() == HONEST
