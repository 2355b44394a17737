"""``pull`` from real daemons: from several at once, at a rate, on a terminal (processes, sockets and terminals)."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_protocol.multihash import Multihash
from support.command_line import hear_ctrl_c
from support.daemons import Daemon, daemon, wait_until
from support.http_server import serving
from support.nodes import RealNode
from support.offers import PeerChain, root_chain

ROWS = 36_000
WORDS = ("--policy", "unsigned")


@dataclass(frozen=True)
class Publishers:
    """Two daemons that serve the same dataset, whose one slice is large, and a home as theirs that nobody serves."""

    chain: PeerChain
    first: Daemon
    second: Daemon
    third: Path

    @property
    def slice(self) -> tuple[Multihash, bytes]:
        """Hash and bytes of the slice."""
        ((object_hash, content),) = self.chain.files.items()
        return object_hash, content

    def list_sent(self, node: Daemon) -> list[int]:
        """Return the sizes of what a daemon has sent of the slice, as far as it has noted that by now."""
        return [line["size_bytes"] for line in node.log("request") if line["path"].endswith(str(self.slice[0]))]


@pytest.fixture(scope="module")
def publishers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publishers]:
    folder = tmp_path_factory.mktemp("publishers")
    chain = root_chain(folder, slices=0)
    chain.add_rows([(os.urandom(64).hex(), number) for number in range(ROWS)])
    files = {f"/cities/blocks/{block.hash}": block.raw for block in chain.blocks}
    files |= {f"/cities/data/{object_hash}": content for object_hash, content in chain.files.items()}
    files["/cities/refs/head"] = str(chain.head.hash).encode()

    async def fill() -> None:
        from aiohttp import web

        async def answer(request: web.Request) -> web.StreamResponse:
            return web.Response(body=files[request.path]) if request.path in files else web.Response(status=404)

        async with serving(answer) as http:
            filled = await asyncio.to_thread(RealNode(folder / "first").run, "pull", f"{http.base}/cities", *WORDS)
            assert filled.code == 0, filled.err

    asyncio.run(fill())
    for name in ("second", "third"):
        shutil.copytree(folder / "first", folder / name)
    with ExitStack() as stack:
        first, second = (stack.enter_context(daemon(folder / name)) for name in ("first", "second"))
        yield Publishers(chain, first, second, folder / "third")


def test_large_file_is_read_from_all_nodes_that_are_named(publishers: Publishers, tmp_path: Path) -> None:
    node, (object_hash, content) = RealNode(tmp_path / "home"), publishers.slice
    urls = [f"{each.url}/cities" for each in (publishers.first, publishers.second)]
    # Slow enough that neither can have sent everything before the other was asked.
    words = ("pull", urls[0], "--also", urls[1], *WORDS, "--limit-rate", "8M", "-o", "json")
    (report,) = node.must(*words).json()
    assert report["newRows"] == ROWS
    assert next(node.home.glob(f"objects/*/{object_hash}")).read_bytes() == content
    both = (publishers.first, publishers.second)

    def find_sent() -> list[int] | None:
        # With the lists of leaves; a daemon notes what it sent when it was sent, which its reader may know before.
        sent = [sum(publishers.list_sent(each)) for each in both]
        return sent if sum(sent) > len(content) else None

    sent = wait_until(find_sent, publishers.first.log_file.read_text)
    assert min(sent) > 0
    assert sum(sent) < len(content) + 1000
    # One of them is gone, one was never there: the other has everything.
    alone = RealNode(tmp_path / "alone")
    assert alone.must("pull", urls[0], "--also", "http://127.0.0.1:1/cities", *WORDS, "-o", "json").json() == [report]
    refused = node.run("pull", "cities", "--also", urls[1])
    assert (refused.code, "--also is for one dataset of another node" in refused.err) == (2, True)


def test_source_that_sends_wrong_bytes_is_named_on_the_terminal_and_in_the_audit_log(
    publishers: Publishers, tmp_path: Path
) -> None:
    object_hash, content = publishers.slice
    (path,) = publishers.third.glob(f"objects/*/{object_hash}")
    path.chmod(0o600)
    path.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    node = RealNode(tmp_path / "home")
    with daemon(publishers.third) as liar:
        urls = [f"{each.url}/cities" for each in (liar, publishers.first)]
        pulled = node.must("pull", urls[0], "--also", urls[1], *WORDS)
    assert next(node.home.glob(f"objects/*/{object_hash}")).read_bytes() == content
    assert f"a source was put aside, as what it sent is wrong: {liar.url}/" in pulled.out
    assert publishers.first.url not in pulled.out
    (entry,) = [each for each in node.must("inspect", "audit", "-o", "json").json() if each["command"] == "put-aside"]
    assert entry["subject"] == "cities"
    assert liar.url in entry["detail"]


def test_terminal_shows_the_rate_that_was_asked_for(publishers: Publishers, tmp_path: Path) -> None:
    _, content = publishers.slice
    terminal, theirs = os.openpty()
    began = time.monotonic()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "odf_node", "pull", f"{publishers.first.url}/cities", *WORDS),
            *("--limit-rate", "2M", "--home", str(tmp_path / "home")),
        ],
        env=os.environ | {"TERM": "xterm", "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(terminal, 65_536):
            shown += chunk
    except OSError:
        pass  # the terminal's other end was closed
    finally:
        os.close(terminal)
    process.communicate()
    assert process.returncode == 0, shown
    # Half a second's worth comes at once.
    assert time.monotonic() - began > len(content) / 2_000_000 - 0.5
    text = shown.decode()
    rates = [float(number) for number in re.findall(r" of \d+\.\d MB, (\d+\.\d) MB/s, \d+ s left", text)]
    assert rates
    # That of all that came so far. The first ones are of a second only, in which the process may have been held up.
    assert rates[-1] < 2 * 2.0
    assert text.endswith("\r")


def test_pull_that_is_stopped_in_a_download_goes_on_behind_what_came(publishers: Publishers, tmp_path: Path) -> None:
    object_hash, content = publishers.slice
    node, pull = RealNode(tmp_path / "home"), ("pull", f"{publishers.second.url}/cities", *WORDS)
    words = [sys.executable, "-m", "odf_node", *pull, "--limit-rate", "500k", "--home", str(node.home)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c)
    downloads = node.home / "staging/downloads"
    while not any(part.stat().st_size > 300_000 for part in downloads.glob(f"*/{object_hash}.part")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (130, "")
    assert err == "odf-node pull: stopped; nothing was left half-done\n"
    (part,) = downloads.glob(f"*/{object_hash}.part")
    kept_bytes = part.stat().st_size
    node.must(*pull)
    rest_bytes = len(content) - kept_bytes
    wait_until(
        lambda: rest_bytes in publishers.list_sent(publishers.second) or None, publishers.second.log_file.read_text
    )


def test_setting_holds_where_no_rate_is_named(publishers: Publishers, tmp_path: Path) -> None:
    _, content = publishers.slice
    node, slow = RealNode(tmp_path / "home"), {"ODF_NODE_LIMITS_FETCH_BYTES_PER_SECOND": "4000000"}
    began = time.monotonic()
    node.must("pull", f"{publishers.first.url}/cities", *WORDS, environment=slow)
    assert time.monotonic() - began > len(content) / 4_000_000 - 0.5
    mistaken = {"ODF_NODE_LIMITS_FETCH_BYTES_PER_SECOND": "fast"}
    refused = node.run("pull", f"{publishers.first.url}/cities", *WORDS, environment=mistaken)
    assert (refused.code, "ODF_NODE_LIMITS_FETCH_BYTES_PER_SECOND" in refused.err) == (2, True)
