"""A real FTP server on loopback, in a thread, with the files of a folder."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

with warnings.catch_warnings():
    # It stands on asyncore, which Python 3.11 has and calls old.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer

__all__ = ["PASSWORD", "FTPHandler", "ftp_server"]

PASSWORD = "p@ss/w?rd %:#"


@contextmanager
def ftp_server(folder: Path, *, without: tuple[str, ...] = (), handler: type[FTPHandler] = FTPHandler) -> Iterator[int]:
    """Serve until left, to anybody and to ``reader``; give the port. ``without``: commands that it does not know."""
    authorizer = DummyAuthorizer()
    authorizer.add_anonymous(str(folder))
    authorizer.add_user("reader", PASSWORD, str(folder))
    commands = {name: what for name, what in FTPHandler.proto_cmds.items() if name not in without}
    own = type("Handler", (handler,), {"authorizer": authorizer, "proto_cmds": commands, "auth_failed_timeout": 0})
    loop, stopped = IOLoop(), threading.Event()
    server = FTPServer(("127.0.0.1", 0), own, ioloop=loop)

    def serve() -> None:
        while not stopped.is_set():
            server.serve_forever(timeout=0.05, blocking=False, handle_exit=False)
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.address[1]
    finally:
        stopped.set()
        thread.join(30)
