"""A real server that is told of new blocks: keeps what it is sent, and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from odf_node.configuration.declaration import Notice


class Receiver(ThreadingHTTPServer):
    """A real server: keeps what it is sent, and answers as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: list[tuple[str, Any, bytes]] = []
        self.statuses: list[int] = []
        self.location = ""
        self.hangs = threading.Event()
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.path, self.headers, body))
                if outer.hangs.is_set():
                    outer.released.wait(20)
                self.send_response(outer.statuses.pop(0) if outer.statuses else 204)
                if outer.location:
                    self.send_header("Location", outer.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def notice(self, path: str = "/hook", datasets: str = "%") -> Notice:
        return Notice(url=f"http://{self.authority}{path}", datasets=datasets)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
