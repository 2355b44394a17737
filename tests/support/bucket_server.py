"""A server of the S3 protocol in a process of its own, and the environment in which its clients find credentials."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
START_S = 240.0


@contextmanager
def bucket_server(log: Path) -> Iterator[str]:
    """Serve until left; gives ``127.0.0.1:port``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=stream, stderr=stream
        )
    try:
        give_up_at = time.monotonic() + START_S
        while not _answers(port):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, log.read_text()
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=120)


def make_bucket(endpoint: str, name: str) -> None:
    """Make a bucket that anybody may use."""
    request = urllib.request.Request(f"http://{endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/data.json"):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False
