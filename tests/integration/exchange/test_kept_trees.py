"""Trees over files that strangers choose: made elsewhere, in turn, and not twice (EX-32)."""

import asyncio
from pathlib import Path

import aiohttp
import numpy as np
import pyarrow as pa
import pytest

from odf_engines.reading.slices import summarise
from odf_node.http.served_node import NODE
from odf_node.records.errors import ObjectNotFoundError, TooManyWaitingError
from odf_node.rows import trees
from odf_node.rows.slice_process import ReadingLimits, SliceProcess
from odf_node.rows.trees import KeptTrees
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.exchange.limits import MAX_WAITING_TREES
from odf_protocol.exchange.object_parts import LEAF_BYTES, hash_leaves
from odf_protocol.hashing.v1 import HASH_BYTES, TableSummary
from odf_protocol.multihash import Multihash
from support.event_loop import in_loop
from support.exchange_nodes import KAMU_DATA, Chain, TestNode, serving
from support.offers import parquet_bytes
from support.own_children import find_children
from support.slice_reader import FrozenReader
from support.whole_app import create_whole_app

TIGHT = ReadingLimits(memory_bytes=400 * 1024**2, cpu_s=20, cpu_s_per_megabyte=0)
SLICE = parquet_bytes(pa.table({"a": [1, 2], "b": [{"c": "x"}, None]}))
PLENTY = 1_000_000


def bomb() -> bytes:
    """Some hundred bytes that stand for a gigabyte and a half of text."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(65_536, np.int32)), pa.array(["a" * 25_000]))
    return parquet_bytes(
        pa.table({"text": texts}), compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30
    )


def keep(folder: Path, *contents: bytes) -> TestNode:
    node = TestNode.create(folder)
    node.put_objects(contents)
    return node


@pytest.mark.parametrize(
    "content", [SLICE, *(path.read_bytes() for path in sorted(KAMU_DATA.glob("types.all/data/*")))]
)
@in_loop
async def test_tree_that_another_process_computed_is_the_same(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "slice").write_bytes(content)
    got = await KeptTrees(keep(tmp_path / "home", content).objects).get_summary(Multihash.of_sha3_256(content), "them")
    assert got == summarise(tmp_path / "slice")


@in_loop
async def test_checkpoint_that_stands_for_gigabytes_is_rejected_and_the_node_goes_on(tmp_path: Path) -> None:
    checkpoint = bomb()
    assert len(checkpoint) < 1_000
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain().add(SLICE, checkpoint))
    async with node.serving() as url, aiohttp.ClientSession(f"{url}/_odf/v1/datasets/demo.data/trees/") as session:
        async with session.get(str(Multihash.of_sha3_256(checkpoint))) as got:
            assert (got.status, (await got.json())["rule"]) == (422, "ROWS-6 slice-is-read-at-bounded-cost")
        async with session.get(str(Multihash.of_sha3_256(SLICE))) as got:
            assert (got.status, (await got.json())["row_count"]) == (200, 2)


@in_loop
async def test_file_that_was_rejected_once_is_not_read_again(tmp_path: Path) -> None:
    contents = bomb(), b"no Parquet"
    node = keep(tmp_path / "home", *contents)
    trees = KeptTrees(node.objects, TIGHT)
    for content, error in zip(contents, (RejectedError, MalformedError), strict=True):
        name = Multihash.of_sha3_256(content)
        stated = []
        for _ in range(2):
            with pytest.raises(error) as caught:
                await trees.get_summary(name, "them")
            stated.append(str(caught.value))
            node.objects.delete(name)
        assert stated[0] == stated[1]


@in_loop
async def test_file_that_was_missing_is_looked_for_again(tmp_path: Path) -> None:
    node = keep(tmp_path / "home", b"another")
    trees = KeptTrees(node.objects)
    with pytest.raises(ObjectNotFoundError):
        await trees.get_summary(Multihash.of_sha3_256(SLICE), "them")
    node.put_objects([SLICE])
    assert (await trees.get_summary(Multihash.of_sha3_256(SLICE), "them")).row_count == 2


@in_loop
async def test_requests_that_wait_for_trees_leave_room_for_others(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(Chain().add(SLICE))
    app = create_whole_app(node.served)
    trees = app[NODE].trees
    assert isinstance(trees, KeptTrees)
    async with serving(app) as url, aiohttp.ClientSession(f"{url}/") as session:

        async def ask(path: str) -> tuple[int, str | None]:
            async with session.get(path) as got:
                await got.read()
                return got.status, got.headers.get("Retry-After")

        tree = f"_odf/v1/datasets/demo.data/trees/{Multihash.of_sha3_256(SLICE)}"
        async with trees._semaphore.ask("another"):
            asked = [asyncio.create_task(ask(tree)) for _ in range(MAX_WAITING_TREES // 2 + 1)]
            done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result() for task in done] == [(503, "2")]
            assert await ask("demo.data/refs/head") == (200, None)
        assert await asyncio.gather(*waiting) == [(200, None)] * (MAX_WAITING_TREES // 2)


@in_loop
async def test_request_beyond_those_that_wait_is_turned_away(tmp_path: Path) -> None:
    trees = KeptTrees(keep(tmp_path / "home", SLICE).objects)
    name = Multihash.of_sha3_256(SLICE)
    async with trees._semaphore.ask("whoever is served"):
        callers = [f"caller {number % 3}" for number in range(MAX_WAITING_TREES)]
        waiting = [asyncio.create_task(trees.get_summary(name, each)) for each in callers]
        await asyncio.sleep(0)
        with pytest.raises(TooManyWaitingError, match=f"{MAX_WAITING_TREES} others"):
            await trees.get_summary(name, "another")
    found = await asyncio.gather(*waiting)
    assert all(each is found[0] for each in found)


@in_loop
async def test_one_who_asks_for_many_trees_leaves_turns_to_others(tmp_path: Path) -> None:
    trees = KeptTrees(keep(tmp_path / "home", SLICE).objects)
    name, served = Multihash.of_sha3_256(SLICE), []

    async def ask(caller: str) -> None:
        await trees.get_summary(name, caller)
        served.append(caller)

    async with trees._semaphore.ask("greedy"):
        waiting = [asyncio.create_task(ask("greedy")) for _ in range(MAX_WAITING_TREES // 2)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyWaitingError):
            await trees.get_summary(name, "greedy")
        waiting.append(asyncio.create_task(ask("modest")))
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert served.index("modest") <= 1


@in_loop
async def test_cancelled_request_takes_its_reader_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "SliceProcess", FrozenReader)
    name = Multihash.of_sha3_256(SLICE)
    before = len(find_children("odf_engines.reading"))
    asked = asyncio.create_task(KeptTrees(keep(tmp_path, SLICE).objects).get_summary(name, "them"))
    while len(find_children("odf_engines.reading")) == before:
        await asyncio.sleep(0.01)
        assert not asked.done()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert len(find_children("odf_engines.reading")) == before


def test_few_bytes_that_stand_for_many_rows_have_no_tree(tmp_path: Path) -> None:
    path = tmp_path / "slice"
    path.write_bytes(parquet_bytes(pa.table({"n": pa.nulls(1_000_000, pa.string())})))
    with SliceProcess(TIGHT) as reader:
        with pytest.raises(UnsupportedError, match="200 leaves"):
            reader.summarise(path, max_leaves=200, max_schema_bytes=PLENTY)
        with pytest.raises(UnsupportedError, match="size of a schema"):
            reader.summarise(path, max_leaves=PLENTY, max_schema_bytes=5)
        found = reader.summarise(path, max_leaves=PLENTY, max_schema_bytes=PLENTY)
    assert found == summarise(path)


@in_loop
async def test_trees_that_were_not_asked_for_longest_make_room(tmp_path: Path) -> None:
    trees = KeptTrees(keep(tmp_path / "home", SLICE).objects)
    name = Multihash.of_sha3_256(SLICE)
    first = await trees.get_summary(name, "them")
    large = TableSummary.of_leaves(1, first.schema, [[bytes(HASH_BYTES) * 500_000]] * 3)
    others = [Multihash.of_sha3_256(bytes([number])) for number in range(3)]
    trees._keep(others[0], large)
    assert await trees.get_summary(name, "them") is first
    trees._keep(others[1], large)
    assert list(trees._kept) == [name, others[1]]


def test_leaves_of_a_read_that_was_stopped_are_no_tree() -> None:
    leaves = [bytes(LEAF_BYTES)] * 3
    assert len(hash_leaves(leaves, 3 * LEAF_BYTES)) == 3
    with pytest.raises(MalformedError):
        hash_leaves(leaves[:1], 3 * LEAF_BYTES)
