"""The daemon on a disk that is read-only, is closed while it runs, or is full: others are served, nothing is lost."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_node.adapters.key_files import KeyFiles
from odf_protocol.multihash import Multihash
from support.daemons import Daemon, daemon
from support.exchange_nodes import Chain, TestNode
from support.pushes import ask, begin_push, upload

SERVED = os.urandom(3_000_000)
HASH = Multihash.of_sha3_256(SERVED)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A node with a dataset, a key and somebody who may push."""
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("demo.data").add(SERVED))
    node.put_token()
    KeyFiles(node.home).get_or_create_node_key()
    node.store.close()
    return tmp_path / "home"


def bubblewrap(*options: str | Path) -> list[str | Path]:
    return [find_bubblewrap().path, "--dev-bind", "/", "/", *options]


def assert_serves(node: Daemon) -> None:
    assert ask(node, "GET", "/_odf/v1/ready")[0] == 200
    assert ask(node, "GET", f"/demo.data/data/{HASH}") == (200, SERVED)


def assert_one_error(node: Daemon, kind: str, home: Path) -> None:
    errors = node.wait_for("error")
    assert {error["error"] for error in errors} == {kind}
    assert all(str(home) in error["text"] and "\n" not in error["text"] for error in errors)


def test_daemon_on_a_read_only_disk_serves_and_says_why_it_takes_nothing(home: Path) -> None:
    # A writer that ended badly leaves its log behind, with what is newest in it.
    writer = TestNode.create(home)
    newest = writer.keep(Chain("newest.data").add(b"newest")).head
    assert (home / "odf-node.sqlite-wal").stat().st_size > 0
    with daemon(home, around=bubblewrap("--ro-bind", home, home)) as node:
        assert_serves(node)
        assert ask(node, "GET", "/newest.data/refs/head") == (200, str(newest.hash).encode())
        status, stated = begin_push(node, Chain("pushed.data").add(b"x"))
        assert (status, stated["title"]) == (503, "Service Unavailable")
        assert str(home) not in json.dumps(stated)
        assert_one_error(node, "HomeReadOnlyError", home)
        assert_serves(node)
    writer.store.close()


@contextmanager
def closed(home: Path) -> Iterator[None]:
    """Take the right to write in the home's folders away, and give it back."""
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        yield
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_home_that_is_closed_while_the_daemon_runs_is_served_and_written_again_when_it_is_opened(home: Path) -> None:
    chain = Chain("pushed.data").add(b"first" * 1000).add(b"second" * 1000)
    # In a user's namespace of its own not even root writes where it may not.
    with daemon(home, around=bubblewrap("--unshare-user", "--uid", "1000", "--gid", "1000")) as node:
        status, state = begin_push(node, chain)
        assert status == 200
        assert upload(node, state["push_id"], b"first" * 1000)[0] == 201
        with closed(home):
            assert upload(node, state["push_id"], b"second" * 1000)[0] == 503
            assert begin_push(node, Chain("other.data").add(b"x"))[0] == 503
            assert_one_error(node, "HomeReadOnlyError", home)
            assert_serves(node)
        status, state = begin_push(node, chain)
        assert (status, state["missing_count"]) == (200, 1)
        assert upload(node, state["push_id"], b"second" * 1000)[0] == 201
        assert_serves(node)


def test_disk_that_is_full_ends_one_push_and_nobody_else_notices(home: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    script = 'cp -r "$0"/. "$1" && shift && exec "$@"'
    around = [*bubblewrap("--size", "9000000", "--tmpfs", small), "bash", "-c", script, home, small]
    large, fits = os.urandom(8_000_000), os.urandom(500_000)
    with daemon(small, around=around) as node:
        _, state = begin_push(node, Chain("large.data").add(large))
        served: list[int] = []
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                status, content = ask(node, "GET", f"/demo.data/data/{HASH}")
                served.append(status if content == SERVED else 0)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert upload(node, state["push_id"], large)[0] == 507
        finally:
            stop.set()
            reader.join()
        assert set(served) == {200}
        assert_one_error(node, "HomeFullError", small)
        # The room that it took is there for others.
        _, state = begin_push(node, Chain("small.data").add(fits))
        assert upload(node, state["push_id"], fits)[0] == 201
        assert_serves(node)
