"""Liars against whole processes: commands that pull from them, a daemon that they push to; others are served."""

import asyncio
import json
import os
import socket
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.multihash import Multihash
from support.daemons import Daemon, daemon
from support.exchange_nodes import TOKEN, Chain, TestNode
from support.hostile_peer import Script, answer, cut_after, endless, hostile_peer
from support.nodes import RealNode
from support.offers import root_chain
from support.pushes import ask, begin_push, upload

SERVED = os.urandom(500_000)
HASH = Multihash.of_sha3_256(SERVED)


def make_home(folder: Path) -> Path:
    node = TestNode.create(folder)
    node.keep(Chain("demo.data").add(SERVED))
    node.put_token()
    node.store.close()
    return folder


def assert_serves(node: Daemon) -> None:
    with urllib.request.urlopen(f"{node.url}/demo.data/data/{HASH}", timeout=240) as got:
        assert got.read() == SERVED


def test_pulls_from_liars_end_in_one_line_each_and_an_honest_one_in_the_dataset(tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    blocks = {f"/blocks/{block.hash}": answer(block.raw) for block in chain.blocks}
    honest: Mapping[str, Script] = {
        "/refs/head": answer(str(chain.head.hash).encode()),
        **blocks,
        **{f"/data/{object_hash}": answer(content) for object_hash, content in chain.files.items()},
    }
    wanted = next(item for block in chain.blocks for item in iter_wanted(block.event))
    content, place = chain.files[wanted.hash], f"/data/{wanted.hash}"
    # By what is done: the answer that does it, and the code with which the command ends.
    lies: Mapping[str, tuple[dict[str, Script], int]] = {
        "ends.early": ({place: cut_after(content, 0)}, 5),
        "other.bytes": ({place: answer(bytes(len(content)))}, 4),
        "never.ends": ({place: endless()}, 4),
        "endless.block": ({f"/blocks/{chain.blocks[1].hash}": endless()}, 7),
    }
    home = make_home(tmp_path / "home")
    node = RealNode(home)

    async def lie(name: str) -> None:
        scripts, code = lies[name]
        async with hostile_peer({**honest, **scripts}) as peer:
            ran = await asyncio.to_thread(node.run, "pull", f"{peer.url}/{name}", "--policy", "unsigned")
            assert ran.code == code, (name, ran.err)
            assert ran.out == ""
            first = ran.err.splitlines()[0]
            assert (name in first, "Traceback" in ran.err) == (True, False), ran.err

    async def story() -> None:
        with daemon(home) as served:
            # All at once, on one home, beside the daemon.
            await asyncio.gather(*(lie(name) for name in lies))
            await asyncio.to_thread(assert_serves, served)
            async with hostile_peer(honest) as peer:
                pull = ("pull", f"{peer.url}/cities", "--policy", "unsigned", "-o", "json")
                (report,) = (await asyncio.to_thread(node.must, *pull)).json()
                assert report["newBlocks"] == len(chain.blocks)

    asyncio.run(story())
    store = TestNode.create(home)
    assert {record.name for record in store.store.list_datasets()} == {"demo.data", "cities"}
    for object_hash in chain.files:
        store.objects.check(object_hash)


def send_on(connection: socket.socket, chunk: bytes) -> None:
    give_up_at = time.monotonic() + 240
    while time.monotonic() < give_up_at:
        connection.sendall(chunk)
        time.sleep(0.02)


def test_pushers_that_stall_stop_lie_or_never_end_leave_the_daemon_to_others(tmp_path: Path) -> None:
    content = os.urandom(2_000_000)
    chain = Chain("pushed.data").add(content)
    place = f"objects/{Multihash.of_sha3_256(content)}"
    with daemon(make_home(tmp_path / "home")) as node:
        _, state = begin_push(node, chain)
        host, port = node.url.removeprefix("http://").split(":")

        def put(headers: str, body: bytes) -> socket.socket:
            connection = socket.create_connection((host, int(port)), timeout=240)
            connection.sendall(
                f"PUT /_odf/v1/pushes/{state['push_id']}/{place} HTTP/1.1\r\nHost: {host}:{port}\r\n"
                f"Authorization: Bearer {TOKEN}\r\n{headers}\r\n\r\n".encode()
                + body
            )
            return connection

        def status_of(connection: socket.socket) -> int:
            with connection:
                return int(connection.recv(65_536).split(b" ", 2)[1])

        stated = f"Content-Length: {len(content)}"
        silent = [put(stated, content[:1000]) for _ in range(5)]
        put(stated, content[:5000]).close()
        assert status_of(put(f"Content-Length: {len(content) + 1}", b"")) == 413
        assert status_of(put(stated, bytes(len(content)))) in {409, 422}
        with put("Transfer-Encoding: chunked", b"") as endless_one:
            chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
            for _ in range(len(content) // 0x10000 + 1):
                endless_one.sendall(chunk)
            assert int(endless_one.recv(65_536).split(b" ", 2)[1]) == 413
            # And whoever goes on all the same is cut off soon.
            with pytest.raises(OSError, match=r"reset|[Bb]roken"):
                send_on(endless_one, chunk)
        assert_serves(node)
        # Whoever is honest is not kept from the same object by those who hold it up.
        assert upload(node, state["push_id"], content)[0] == 201
        assert json.loads(ask(node, "GET", f"/_odf/v1/pushes/{state['push_id']}")[1])["missing_count"] == 0
        for connection in silent:
            connection.close()
        assert_serves(node)
        assert not node.log("fault")
