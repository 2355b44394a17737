"""A server of the S3 protocol in a process of its own, and the environment in which its clients find credentials."""

import re
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
_RUNS = re.compile(r"Running on http://(127\.0\.0\.1:\d+)")


@contextmanager
def bucket_server(log: Path) -> Iterator[str]:
    """Serve until left; gives ``127.0.0.1:port``."""
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stdout=stream, stderr=stream
        )
    try:
        give_up_at = time.monotonic() + START_S
        # It takes whichever port is free, and says in its log which.
        while not ((found := _RUNS.search(log.read_text())) and _answers(found[1])):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, log.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        server.terminate()
        server.wait(timeout=120)


def make_bucket(endpoint: str, name: str) -> None:
    """Make a bucket that anybody may use."""
    request = urllib.request.Request(f"http://{endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{endpoint}/moto-api/data.json"):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False
