"""Servers that speak as much of PostgreSQL's protocol as a lie needs, on loopback.

Source: "Frontend/Backend Protocol" in PostgreSQL's documentation.
"""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

CLEARTEXT_PASSWORD = b"R" + struct.pack("!ii", 8, 3)
SIGNED_IN = b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I"
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)


@contextmanager
def false_postgres(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Let ``serve`` answer each connection in a thread; give the port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def read_startup(connection: socket.socket) -> bytes:
    """Read what a client begins with, and reject it TLS."""
    while (message := connection.recv(8192)) == _SSL_REQUEST:
        connection.sendall(b"N")
    return message


def forward_encrypted(connection: socket.socket, context: ssl.SSLContext, path: str) -> None:
    """Encrypt a connection to the server whose socket is at ``path``, which does not do so itself."""
    assert connection.recv(8) == _SSL_REQUEST
    connection.sendall(b"S")
    with context.wrap_socket(connection, server_side=True) as encrypted, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        back = threading.Thread(target=_copy, args=(server, encrypted), daemon=True)
        back.start()
        _copy(encrypted, server)
        back.join(10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
