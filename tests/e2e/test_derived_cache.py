"""Derived data as a cache, with a real engine: dropped, computed again to the bit, and fetched where that cannot be."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_node.acceptance.offers import EVERYTHING, AcceptOptions, Subset
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.layout_places import find_layout_target
from odf_node.composition import Node
from odf_node.daemon.background_rebuild import BackgroundRebuild
from odf_node.errors import NodeBusyError, ObjectsAbsentError, UsageError
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.http.server import create_app
from odf_node.ports.progress import Silence
from odf_node.records.datasets import DatasetRecord, Remote, RemoteDirection
from odf_protocol.events import DatasetKind, ExecuteTransform, Seed
from odf_protocol.exchange.routes import ObjectKind, object_path
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp
from support.exchange_nodes import RecordingReceiver, TestNode, serving
from support.offering_peer import OfferingPeer
from support.offers import NOON, NOW, Judge, PeerChain, PublisherHome, SharedEngine, root_chain, select
from support.signing import NEW_KEY, OTHER_KEY

pytestmark = pytest.mark.spark


class LentEngine(SharedEngine):
    """Nodes of a test come and go; the engine stays."""

    def close(self) -> None: ...

    def stop(self) -> None: ...


@dataclass
class Place:
    """A node of its own that writes ``cities``, ``doubled`` from it, and ``tripled`` from that."""

    home: HomeFolder
    engine: SharedEngine
    publisher: PublisherHome
    root: PeerChain
    doubled: PeerChain
    tripled: PeerChain

    def open(self) -> Node:
        node = Node(self.home, FixedClock(NOW))
        node.__dict__["engines"] = self.engine
        return node


@pytest.fixture
def place(tmp_path: Path, spark_session: Any) -> Place:
    publisher = PublisherHome(Judge.create(tmp_path / "home", spark_session))
    root = root_chain(tmp_path, slices=1)
    chains = []
    publisher.keep(root)
    source = root
    for key, name, factor in ((NEW_KEY, "doubled", 2), (OTHER_KEY, "tripled", 3)):
        chain = PeerChain(tmp_path, key=key, name=name)
        column = "people" if source is root else "more"
        chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
        chain.add(select(f"SELECT event_time, city, {column} * {factor} AS more FROM in0", source.id))
        publisher.keep(chain)
        publisher.run(chain, at=Timestamp(NOON.seconds + 100))
        chains.append(chain)
        source = chain
    engine = LentEngine(tmp_path / "shared", publisher.judge.home, spark_session)
    return Place(publisher.judge.home, engine, publisher, root, *chains)


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    with closing(place.open()) as node:
        yield node


def held(node: Node, chain: PeerChain) -> DatasetRecord:
    record = node.store.find_dataset(chain.id)
    assert record is not None
    return record


def bring(node: Node, chain: PeerChain) -> Any:
    return asyncio.run(node.bringing.bring(held(node, chain), None, Silence()))


def test_dropped_files_come_back_to_the_bit_and_nothing_calls_it_damage(node: Node, place: Place) -> None:
    everything = set(node.objects.iter_hashes())
    for chain in (place.doubled, place.tripled):
        assert node.derived_cache.drop(held(node, chain)).files == 1
    gone = set(place.doubled.files) | set(place.tripled.files)
    assert set(node.objects.iter_hashes()) == everything - gone

    damaged: list[str] = []
    node.scrubber.run(now=node.now, bytes_per_second=0, wait=lambda _s: False, on_damage=damaged.append)
    assert damaged == []
    assert node.sweeper.collect_garbage().objects == 0
    repaired = asyncio.run(node.repairing.repair(held(node, place.doubled), [], Silence()))
    assert (repaired.is_whole, repaired.absent_objects) == (True, 1)
    assert held(node, place.doubled).trust is Trust.OWN

    # What it is derived from was dropped too, and comes back with it.
    report = bring(node, place.tripled)

    assert (report.rebuilt_files, report.fetched_files, report.failures) == (1, 0, [])
    assert set(node.objects.iter_hashes()) == everything == node.store.list_expected_objects()
    for name, content in {**place.doubled.files, **place.tripled.files}.items():
        assert node.objects.get_path(name).read_bytes() == content


def test_drop_beside_a_writer_frees_nothing_and_goes_on_where_a_killed_one_stopped(node: Node, place: Place) -> None:
    record, everything = held(node, place.doubled), set(node.objects.iter_hashes())
    with node.objects.writing(), pytest.raises(NodeBusyError):
        node.derived_cache.drop(record)
    assert set(node.objects.iter_hashes()) == everything == node.store.list_expected_objects()

    node.store.mark_absent(record.id, place.doubled.files)
    assert bring(node, place.doubled).rebuilt_files == 0
    assert node.store.list_expected_objects() == everything
    node.store.mark_absent(record.id, place.doubled.files)
    assert node.derived_cache.drop(record).files == 1


def test_next_step_brings_back_what_it_reads(node: Node, place: Place) -> None:
    place.publisher.keep(place.root.add_rows([("Turin", 7)]))
    place.publisher.run(place.doubled, at=Timestamp(NOON.seconds + 200))
    node.derived_cache.drop(held(node, place.doubled))

    record = held(node, place.tripled)
    pull = node.pulling.pull(PullTarget(record.name, record, None), PullOptions(), Silence())

    assert asyncio.run(pull).new_rows == 1
    # The first slice was read by an earlier step, so nobody needed it.
    assert [node.objects.has(name) for name in place.doubled.files] == [False, True]


def test_file_that_cannot_be_made_again_stays_or_comes_from_elsewhere(node: Node, place: Place, tmp_path: Path) -> None:
    step = next(b.sequence_number for b in place.tripled.blocks if isinstance(b.event, ExecuteTransform))
    (content,) = place.tripled.files.values()
    table = pq.read_table(pa.BufferReader(content))
    with closing(Node(Judge.create(tmp_path / "other").home, FixedClock(NOW))) as other:
        other.__dict__["engines"] = place.engine
        # The same rows, written by a program that writes other bytes.
        chain = place.tripled.copy(step_records=[None] * len(place.tripled.blocks), files={})
        chain = chain.replacing_slice(step, table)
        publisher = PublisherHome(Judge(other.home.folder, place.engine))
        for each in (place.root, place.doubled, chain):
            publisher.keep(each)
        with pytest.raises(UsageError, match="might not be had again"):
            other.derived_cache.drop(held(other, chain))
        target = find_layout_target(str(tmp_path / "copy" / "tripled"), "tripled")
        assert target is not None
        asyncio.run(other.exporting.export(held(other, chain), target, Silence()))

        other.store.put_remote(Remote(chain.id, RemoteDirection.PUSH, "http://127.0.0.1:9/tripled"))
        other.derived_cache.drop(held(other, chain))
        with pytest.raises(ObjectsAbsentError, match="equal rows come out in other bytes"):
            bring(other, chain)

        other.store.put_remote(Remote(chain.id, RemoteDirection.PUSH, target.url))
        report = bring(other, chain)
        assert (report.rebuilt_files, report.fetched_files, report.sources) == (0, 1, [target.url])
        assert set(chain.files) <= set(other.objects.iter_hashes())


def test_copy_of_others_that_is_computed_from_a_hidden_input_is_for_this_node_alone(
    place: Place, tmp_path: Path
) -> None:
    """EX-82: a chain that was taken on its metadata alone, of which nobody brought a byte."""
    with closing(Node(Judge.create(tmp_path / "other").home, FixedClock(NOW))) as other:
        other.__dict__["engines"] = place.engine
        root = PublisherHome(Judge(other.home.folder, place.engine)).keep(place.root)
        other.store.set_published(root.id, False)
        pull_options = AcceptOptions(published=True, force=False, subset=Subset.METADATA_ONLY)
        peer = OfferingPeer(place.doubled.copy(files={}))
        taken = other.taking.take(
            peer, PullRequest(url="http://127.0.0.1:9/doubled", name="doubled", pull_options=pull_options)
        )
        asyncio.run(taken)
        (name,) = place.doubled.files
        assert bring(other, place.doubled).rebuilt_files == 1
        assert other.objects.has(name)
        assert other.store.list_absent_objects(place.doubled.id) == frozenset()
        assert not other.store.has_dataset_object(place.doubled.id, name)


def test_daemon_brings_back_what_others_ask_for_and_clones_are_completed_from_it(
    node: Node, place: Place, tmp_path: Path, spark_session: Any
) -> None:
    node.derived_cache.drop(held(node, place.doubled))
    (name,) = place.doubled.files
    pool = BackgroundRebuild(place.open)
    receiver = RecordingReceiver(node.store, node.objects)
    served = replace(TestNode(place.home, node.store, node.objects, receiver).served, rebuilds=pool)
    clone = Node(Judge.create(tmp_path / "clone").home, FixedClock(NOW))
    clone.__dict__["engines"] = place.engine

    async def pull(address: str, what: str, pull_options: AcceptOptions = EVERYTHING) -> Any:
        async with await clone.outgoing.open_peer(f"{address}/{what}") as peer:
            request = PullRequest(url=f"{address}/{what}", name=what, pull_options=pull_options)
            return await clone.taking.take(peer, request)

    async def ask() -> None:
        metadata = AcceptOptions(published=True, force=False, subset=Subset.METADATA_ONLY)
        async with serving(create_app(served)) as address:
            for what in ("cities", "doubled"):
                assert (await pull(address, what, metadata)).record.trust is Trust.METADATA
            statuses = []
            async with aiohttp.ClientSession() as session:
                while True:
                    async with session.get(f"{address}/doubled/{object_path(ObjectKind.DATA, name)}") as answer:
                        statuses.append(answer.status)
                        if answer.status == 200:
                            assert await answer.read() == place.doubled.files[name]
                            break
                        assert answer.status == 503, await answer.text()
                        assert int(answer.headers["Retry-After"]) > 0
                    await asyncio.sleep(0.05)
            assert set(statuses) == {503, 200}
            # The input's files, not asked for so far, come when the steps are run again.
            completed = await pull(address, "doubled")
            assert (completed.completed_blocks, completed.replayed_steps) == (4, 1)
            assert completed.record.trust is Trust.REEXECUTED
            assert clone.store.list_absent_objects(place.root.id) == frozenset()

    pool.start()
    try:
        asyncio.run(ask())
    finally:
        pool.end()
        clone.close()
