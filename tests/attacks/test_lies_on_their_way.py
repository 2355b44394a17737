"""Clause ROWS-7: rows are checked while other slices still arrive, and nothing is taken before all of them hold."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import pytest

from odf_node.acceptance import row_checks
from odf_node.acceptance.offers import AcceptanceReport
from odf_node.adapters import object_downloads
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange import fetching
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import UnavailableError
from odf_protocol.events import AddData
from odf_protocol.policy import Policy
from odf_protocol.timestamp import Timestamp
from support.event_loop import in_loop
from support.hostile_peer import HostilePeer, Script, answer, cut_after, hostile_peer, stall_after
from support.offers import CITIES, NOON, NOW, Judge, PeerChain, root_chain, slice_table
from support.own_children import find_children
from support.slice_reader import OwnReader

SLICES = range(2, 6)
"""Blocks with data, behind Seed and schema."""
WAIT_S = 120.0  # guess: a machine that is slow and busy
SETTINGS = ClientSettings(attempts=2, backoff_s=0.001)


class NotedReader(OwnReader):
    """Says of which blocks the rows were looked at."""

    looked_at: dict[int, Event]

    def check(self, path: Path, block: Block, view: DatasetView) -> int:
        try:
            return super().check(path, block, view)
        finally:
            self.looked_at[block.sequence_number].set()


@pytest.fixture(autouse=True)
def looked_at(monkeypatch: pytest.MonkeyPatch) -> dict[int, Event]:
    events = {number: Event() for number in SLICES}
    monkeypatch.setattr(fetching, "LARGE_BYTES", 1)
    monkeypatch.setattr(object_downloads, "LARGE_BYTES", 1)
    monkeypatch.setattr(row_checks, "SliceProcess", NotedReader)
    monkeypatch.setattr(NotedReader, "looked_at", events, raising=False)
    return events


@dataclass
class Puller:
    """Somebody who pulls with an empty home, and what must hold of it afterwards."""

    judge: Judge
    node: Node

    async def pull(self, peer: HostilePeer, settings: ClientSettings = SETTINGS) -> AcceptanceReport:
        url = f"{peer.url}/cities"
        async with await open_peer(url, settings) as opened:
            return await self.node.taking.take(opened, PullRequest(url=url, name="cities", policy=Policy.UNSIGNED))

    def require_untouched(self, before: Mapping[str, bytes]) -> None:
        assert self.judge.snapshot() == before
        assert not list(self.node.objects.iter_hashes())
        assert not self.node.store.list_datasets()


@pytest.fixture
def puller(tmp_path: Path) -> Iterator[Puller]:
    judge = Judge.create(tmp_path / "home")
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield Puller(judge, node)
    node.close()


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    chain = root_chain(tmp_path)
    return chain.add_rows(CITIES).add_rows(CITIES)


@asynccontextmanager
async def peer_of(chain: PeerChain, scripts: Mapping[int, Script]) -> AsyncIterator[HostilePeer]:
    """Serve a chain; ``scripts`` say how the slices of some blocks are sent."""
    answers = {
        "/refs/head": answer(str(chain.head.hash).encode()),
        **{f"/blocks/{block.hash}": answer(block.raw) for block in chain.blocks},
        **{f"/data/{name}": cut_after(content, 0, times=0) for name, content in chain.files.items()},
        **{path_of(chain, number): script for number, script in scripts.items()},
    }
    async with hostile_peer(answers) as peer:
        yield peer


def path_of(chain: PeerChain, number: int) -> str:
    event = chain.blocks[number].event
    assert isinstance(event, AddData)
    assert event.new_data is not None
    return f"/data/{event.new_data.physical_hash}"


def content_of(chain: PeerChain, number: int) -> bytes:
    return next(content for name, content in chain.files.items() if path_of(chain, number).endswith(str(name)))


def held_until(content: bytes, release: asyncio.Event) -> Script:
    """Send all but one byte, and the last one later."""

    async def script(request: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content[:-1])
        await writer.drain()
        await release.wait()
        writer.write(content[-1:])

    return script


@pytest.mark.parametrize(("liar", "held"), [(2, 3), (3, 5), (4, 2), (5, 4)])
@in_loop
async def test_lie_is_told_when_all_slices_are_here_and_nothing_is_left_of_it(
    liar: int, held: int, chain: PeerChain, puller: Puller, looked_at: dict[int, Event]
) -> None:
    at, first = Timestamp(NOON.seconds + liar), (liar - SLICES.start) * 3
    lying = chain.replacing_slice(liar, slice_table(CITIES, first_offset=first, at=at, op=[0, 9, 0]))
    before, readers = puller.judge.snapshot(), find_children("odf_engines.reading")
    release = asyncio.Event()

    async with peer_of(lying, {held: held_until(content_of(lying, held), release)}) as peer:
        pulling = asyncio.create_task(puller.pull(peer))
        for number in set(SLICES) - {held}:
            assert await asyncio.to_thread(looked_at[number].wait, WAIT_S), number
        assert not pulling.done()
        puller.require_untouched(before)

        release.set()
        with pytest.raises(ProposalRejectedError, match="ROWS-4") as caught:
            await pulling

    assert caught.value.sequence_number == liar
    puller.require_untouched(before)
    assert not list(puller.node.home.folder.downloads.iterdir())
    assert find_children("odf_engines.reading") <= readers


@in_loop
async def test_large_slice_is_asked_for_when_half_of_the_one_before_is_here(chain: PeerChain, puller: Puller) -> None:
    release, is_begun, content = asyncio.Event(), asyncio.Event(), content_of(chain, 2)

    async def script(request: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content[:9])
        await writer.drain()
        is_begun.set()
        await release.wait()
        writer.write(content[9:])

    async with peer_of(chain, {2: script}) as peer:
        pulling = asyncio.create_task(puller.pull(peer))
        await is_begun.wait()
        await asyncio.sleep(0.1)
        assert [number for number in SLICES if any(path_of(chain, number) in path for path in peer.paths())] == [2]
        release.set()
        assert (await pulling).new_rows == 12


@in_loop
async def test_slices_that_hold_are_taken_with_the_one_that_came_last(
    chain: PeerChain, puller: Puller, looked_at: dict[int, Event]
) -> None:
    release = asyncio.Event()
    async with peer_of(chain, {2: held_until(content_of(chain, 2), release)}) as peer:
        pulling = asyncio.create_task(puller.pull(peer))
        assert await asyncio.to_thread(looked_at[5].wait, WAIT_S)
        assert not puller.node.store.list_datasets()
        release.set()
        assert (await pulling).new_rows == 12


@in_loop
async def test_slice_that_stalls_leaves_the_home_as_it_was_and_the_others_for_the_next_pull(
    chain: PeerChain, puller: Puller, looked_at: dict[int, Event]
) -> None:
    stalled = content_of(chain, 3)
    before, readers = puller.judge.snapshot(), find_children("odf_engines.reading")
    async with peer_of(chain, {3: stall_after(stalled, len(stalled) - 1)}) as peer:
        with pytest.raises(PeerUnavailableError):
            await puller.pull(peer, replace(SETTINGS, stall_s=1.0))
    puller.require_untouched(before)
    assert find_children("odf_engines.reading") <= readers

    async with peer_of(chain, {}) as peer:
        assert (await puller.pull(peer)).new_rows == 12
        assert next(r for r in peer.requests if path_of(chain, 3) in r.path).range_start == len(stalled) - 1


@in_loop
async def test_reader_that_is_killed_while_slices_arrive_takes_nothing(
    chain: PeerChain, puller: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, killed = asyncio.Event(), Event()

    class KilledReader(OwnReader):
        def check(self, path: Path, block: Block, view: DatasetView) -> int:
            if not killed.is_set():
                self.start()
                assert self._reader._process is not None
                self._reader._process.stop()
                killed.set()
            return super().check(path, block, view)

    before, readers = puller.judge.snapshot(), find_children("odf_engines.reading")
    monkeypatch.setattr(row_checks, "SliceProcess", KilledReader)
    async with peer_of(chain, {5: held_until(content_of(chain, 5), release)}) as peer:
        pulling = asyncio.create_task(puller.pull(peer))
        assert await asyncio.to_thread(killed.wait, WAIT_S)
        release.set()
        with pytest.raises(UnavailableError, match="SIGKILL"):
            await pulling
    puller.require_untouched(before)
    assert find_children("odf_engines.reading") <= readers

    monkeypatch.setattr(row_checks, "SliceProcess", SliceProcess)
    async with peer_of(chain, {}) as peer:
        assert (await puller.pull(peer)).new_rows == 12
