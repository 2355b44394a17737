"""The daemon under what the world does to it: killed, held half open, pulled from onto a full disk (real processes)."""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.multihash import Multihash
from support.daemons import Daemon, daemon
from support.exchange_nodes import Chain, TestNode
from support.pushes import begin_push, upload

SLICE = os.urandom(8_000_000)
HASH = Multihash.of_sha3_256(SLICE)
HASTY = ClientSettings(attempts=1, backoff_s=0.01)


def publish(home: Path) -> Chain:
    node, chain = TestNode.create(home), Chain("demo.data").add(SLICE)
    node.keep(chain)
    node.store.close()
    return chain


def fetch(url: str, chain: Chain, home: Path) -> None:
    async def run() -> None:
        copy = TestNode.create(home)
        wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
        async with await open_peer(f"{url}/demo.data", HASTY) as peer:
            with copy.objects.writing():
                await peer.fetch_objects(wanted, copy.objects)

    asyncio.run(run())


def is_ready(node: Daemon) -> bool:
    with urllib.request.urlopen(f"{node.url}/_odf/v1/ready", timeout=240) as answer:
        return bool(json.loads(answer.read()) == {"status": "ready"})


def test_daemon_that_was_killed_in_a_download_is_started_again_and_the_download_goes_on(tmp_path: Path) -> None:
    chain = publish(tmp_path / "home")
    # Slow enough that the kill finds it in the middle.
    with daemon(tmp_path / "home", settings="[limits]\nsend_bytes_per_second = 4000000\n") as node:
        copy = tmp_path / "copy"
        script = (
            "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
            "from fault.test_daemon_faults import fetch\n"
            "from support.exchange_nodes import Chain\n"
            "fetch(sys.argv[2], Chain('demo.data').add(Path(sys.argv[4]).read_bytes()), Path(sys.argv[3]))\n"
        )
        (tmp_path / "slice").write_bytes(SLICE)
        words = [
            sys.executable,
            "-c",
            script,
            str(Path(__file__).parents[1]),
            node.url,
            str(copy),
            str(tmp_path / "slice"),
        ]
        puller = subprocess.Popen(words, stderr=subprocess.PIPE)
        part = copy / "staging/downloads" / f"{HASH}.part"
        while not (part.exists() and part.stat().st_size > 1_000_000):
            assert puller.poll() is None
        node.process.kill()
        node.process.wait()
        _, reported = puller.communicate()
        assert puller.returncode != 0
        assert b"PeerUnavailableError" in reported
    kept_bytes = part.stat().st_size
    assert kept_bytes > 1_000_000
    with daemon(tmp_path / "home") as node:
        fetch(node.url, chain, copy)
        line = next(line for line in node.wait_for("request") if line["path"].endswith(str(HASH)))
        assert line["size_bytes"] == len(SLICE) - kept_bytes
    TestNode.create(copy).objects.check(HASH)


def test_push_to_a_daemon_that_was_killed_goes_on_with_what_had_arrived(tmp_path: Path) -> None:
    chain = Chain("pushed.data").add(b"first" * 1000).add(b"second" * 1000)
    home = TestNode.create(tmp_path / "home")
    home.put_token()
    home.store.close()
    with daemon(tmp_path / "home") as node:
        _, state = begin_push(node, chain)
        assert state["missing_count"] == 2
        assert upload(node, state["push_id"], b"first" * 1000)[0] == 201
        node.process.kill()
        node.process.wait()
    # The next one finds the mark of a writer that was killed, and sweeps.
    with daemon(tmp_path / "home") as node:
        assert not list((tmp_path / "home/staging").glob("lease-*"))
        _, state = begin_push(node, chain)
        assert [item["object_hash"] for item in state["missing"]] == [str(Multihash.of_sha3_256(b"second" * 1000))]


def test_connections_that_say_nothing_do_not_keep_others_out(tmp_path: Path) -> None:
    chain = publish(tmp_path / "home")
    with daemon(tmp_path / "home") as node:
        host, port = node.url.removeprefix("http://").split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(100)]
        for number, connection in enumerate(silent):
            # A third says nothing, a third half a request, a third a whole one whose answer it never reads.
            if number % 3 == 1:
                connection.sendall(b"GET /demo.data/refs/head HTTP/1.1\r\nHost")
            elif number % 3 == 2:
                connection.sendall(f"GET /demo.data/data/{HASH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert is_ready(node)
        fetch(node.url, chain, tmp_path / "copy")
        for connection in silent:
            connection.close()
        assert is_ready(node)


def test_commands_beside_the_daemon_do_no_harm(tmp_path: Path) -> None:
    chain = publish(tmp_path / "home")
    with daemon(tmp_path / "home") as node:
        for command in ("gc", "scrub"):
            words = [sys.executable, "-m", "odf_node", command, "--home", str(tmp_path / "home")]
            assert subprocess.run(words, capture_output=True, check=False).returncode == 0
        fetch(node.url, chain, tmp_path / "copy")


def test_pull_into_a_disk_that_is_full_gives_one_line_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    chain = publish(tmp_path / "home")
    with daemon(tmp_path / "home") as node:
        script = (
            "import resource, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))\n"
            "from fault.test_daemon_faults import fetch\n"
            "from odf_protocol.errors import OdfError\n"
            "from support.exchange_nodes import Chain\n"
            "try:\n"
            "    fetch(sys.argv[2], Chain('demo.data').add(Path(sys.argv[4]).read_bytes()), Path(sys.argv[3]))\n"
            "except OdfError as error:\n"
            "    print(type(error).__name__)\n"
        )
        (tmp_path / "slice").write_bytes(SLICE)
        copy = tmp_path / "copy"
        words = [
            sys.executable,
            "-c",
            script,
            str(Path(__file__).parents[1]),
            node.url,
            str(copy),
            str(tmp_path / "slice"),
        ]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (ran.stdout, ran.returncode) == ("HomeFullError\n", 0), ran.stderr
        assert not TestNode.create(copy).objects.has(HASH)
        fetch(node.url, chain, copy)
        TestNode.create(copy).objects.check(HASH)
        assert is_ready(node)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_peer_that_is_gone_is_said_in_one_error(tmp_path: Path) -> None:
    chain = publish(tmp_path / "home")
    with daemon(tmp_path / "home") as node:
        url = node.url
    with pytest.raises(PeerUnavailableError, match="no server answers there"):
        fetch(url, chain, tmp_path / "copy")


def test_second_daemon_of_a_home_ends_at_once_and_is_let_in_when_the_first_was_killed(tmp_path: Path) -> None:
    """DAEMON-22."""
    home = tmp_path / "home"
    publish(home)
    with daemon(home) as first:
        words = [sys.executable, "-m", "odf_node", "serve", "--home", str(home), "--http-port", "0"]
        second = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
        assert second.returncode == 5
        assert f"another 'odf-node serve' runs on the home {home}" in second.stderr
        assert is_ready(first)
        first.process.kill()
        first.process.wait()
    with daemon(home) as third:
        assert is_ready(third)
