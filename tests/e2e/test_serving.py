"""The server as a process of its own: port, ready line, log, signals (EX-23, EX-24)."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from odf_node.http.server import ListeningAddress, serve
from odf_node.ports.peer_errors import AddressInUseError
from odf_protocol.multihash import Multihash
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode

TESTS = Path(__file__).parent.parent
BIG = b"\0" * 64_000_000


@asynccontextmanager
async def serving_process(home: Path, grace_s: float = 2.0) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "support.serve_node",
        str(home),
        str(grace_s),
        cwd=TESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def end(process: asyncio.subprocess.Process, number: signal.Signals = signal.SIGTERM) -> list[dict[str, object]]:
    """Tell the process to stop and return the lines of its log."""
    process.send_signal(number)
    _, log = await process.communicate()
    return [json.loads(line) for line in log.decode().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@in_loop
async def test_process_listens_before_it_says_so_and_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    async with serving_process(tmp_path / "home") as (process, url), aiohttp.ClientSession() as session:
        async with session.get(f"{url}/_odf/v1/ready") as answer:
            assert answer.status == 200
        lines = await end(process, number)
        assert process.returncode == 0
        assert [line["event"] for line in lines] == ["listening", "request", "stopping", "stopped"]


@in_loop
async def test_each_request_is_one_line_of_json_without_its_token(tmp_path: Path) -> None:
    TestNode.create(tmp_path / "home").put_token()
    async with serving_process(tmp_path / "home") as (process, url), aiohttp.ClientSession() as session:
        async with session.get(
            f"{url}/demo\r\nforged%0a/refs/head", headers={"Authorization": f"Bearer {TOKEN}"}
        ) as answer:
            request_id = answer.headers["X-Request-Id"]
        lines = await end(process)
        line = next(line for line in lines if line["event"] == "request")
        assert (line["method"], line["status"], line["request_id"]) == ("GET", 404, request_id)
        assert {"time", "remote", "path", "size_bytes", "duration_ms"} <= line.keys()
        assert TOKEN not in json.dumps(lines)


@in_loop
async def test_download_that_runs_when_the_node_is_told_to_stop_is_finished(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("demo.data").add(BIG))
    # More than the download takes on any machine; the process ends with the download.
    async with serving_process(tmp_path / "home", 200) as (process, url), aiohttp.ClientSession() as session:
        async with session.get(f"{url}/demo.data/data/{Multihash.of_sha3_256(BIG)}") as answer:
            first = await answer.content.readexactly(1000)
            process.send_signal(signal.SIGTERM)
            rest = await answer.content.read()
        assert len(first) + len(rest) == len(BIG)
        assert await process.wait() == 0


@in_loop
async def test_download_that_nobody_reads_does_not_keep_the_node_from_stopping(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain("demo.data").add(BIG))
    async with serving_process(tmp_path / "home") as (process, url):
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1000)
        writer.write(f"GET /demo.data/data/{Multihash.of_sha3_256(BIG)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readexactly(100)
        async with asyncio.timeout(120):
            await end(process)
        writer.close()


@in_loop
async def test_port_that_is_taken_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUseError, match=f"port {port}: another program uses it"):
            await serve(TestNode.create(tmp_path / "home").served, host="127.0.0.1", port=port, on_ready=print)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("203.0.113.1", 0), ("no-such-host.invalid", 0)])
@in_loop
async def test_address_that_is_not_ours_is_an_error_that_names_it(tmp_path: Path, host: str, port: int) -> None:
    with pytest.raises(AddressInUseError, match=host):
        await serve(TestNode.create(tmp_path / "home").served, host=host, port=port, on_ready=print)


@in_loop
async def test_server_in_a_program_is_ended_by_its_event(tmp_path: Path) -> None:
    stop = asyncio.Event()
    ready: list[ListeningAddress] = []

    def on_ready(address: ListeningAddress, _app: web.Application) -> None:
        ready.append(address)
        stop.set()

    node = TestNode.create(tmp_path / "home")
    await serve(node.served, host="127.0.0.1", port=0, on_ready=on_ready, stop=stop, grace_s=0.1)
    assert ready[0].port > 0
    assert ListeningAddress("::1", 80).url == "http://[::1]:80"
