"""Two nodes that disagree about a slice find out where by a few hashes over a real socket."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from odf_engines.reading.slices import summarise
from odf_locate.tree_queries import LocatedDifference, locate_difference
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.exchange.messages import TreeHeader, TreeNodes, encode_message
from odf_protocol.multihash import Multihash
from support.exchange_nodes import Chain, TestNode
from support.hostile_peer import answer, hostile_peer
from support.offers import parquet_bytes

ROWS = 500_000
COLUMNS = 8


def table(*changes: tuple[int, int], rows: int = ROWS) -> pa.Table:
    values = {f"c{n}": [(row * 31 + n) % 1000 for row in range(rows)] for n in range(COLUMNS)}
    for column, row in changes:
        values[f"c{column}"][row] += 1
    return pa.table({name: pa.array(column, pa.int32()) for name, column in values.items()})


@pytest.fixture(scope="module")
def theirs() -> bytes:
    return parquet_bytes(table())


def locate(tmp_path: Path, theirs: bytes, mine: pa.Table, *, published: bool = True) -> LocatedDifference:
    path = tmp_path / "mine.parquet"
    path.write_bytes(parquet_bytes(mine))
    node = TestNode.create(tmp_path / "served")
    node.keep(Chain().add(theirs), published=published)

    async def ask() -> LocatedDifference | OdfError:
        async with node.serving() as address:
            try:
                return await locate_difference(f"{address}/demo.data", Multihash.of_sha3_256(theirs), summarise(path))
            except OdfError as error:
                return error

    found = asyncio.run(ask())
    if isinstance(found, OdfError):
        raise found
    return found


def test_one_cell_of_four_million_is_found_within_its_leaf_by_a_few_kilobytes(tmp_path: Path, theirs: bytes) -> None:
    found = locate(tmp_path, theirs, table((5, 300_000)))

    ((difference),) = found.differences
    assert (difference.column, difference.start <= 300_000 < difference.stop) == ("c5", True)
    assert difference.stop - difference.start == 4096
    assert found.answer_bytes < 6_000
    assert found.requests <= 5


def test_equal_slices_need_one_request(tmp_path: Path, theirs: bytes) -> None:
    found = locate(tmp_path, theirs, table())
    assert (found.differences, found.requests) == ((), 1)


def test_differences_in_several_columns_are_all_found(tmp_path: Path, theirs: bytes) -> None:
    found = locate(tmp_path, theirs, table((0, 0), (7, ROWS - 1), (7, 5)))
    assert [(d.column, d.start) for d in found.differences] == [("c0", 0), ("c7", 0), ("c7", 499_712)]
    assert found.is_complete


def test_slice_of_an_unpublished_dataset_has_no_tree_for_others(tmp_path: Path, theirs: bytes) -> None:
    with pytest.raises(PeerNotFoundError):
        locate(tmp_path, theirs, table(rows=10), published=False)


def test_slice_that_may_be_absent_has_a_tree_while_it_is_here(tmp_path: Path) -> None:
    """EX-32: nobody compared its rows with their block yet, and a reader with limits makes the tree."""
    node = TestNode.create(tmp_path / "served")
    content = parquet_bytes(table(rows=10))
    record = node.keep(Chain().add(content))
    name = Multihash.of_sha3_256(content)
    node.store.mark_absent(record.id, [name])

    async def ask() -> tuple[int, str]:
        import aiohttp

        async with node.serving() as address, aiohttp.ClientSession() as session:
            reply = await session.get(f"{address}/_odf/v1/datasets/demo.data/trees/{name}")
            return reply.status, (await reply.json()).get("type", "")

    assert asyncio.run(ask()) == (200, "")
    node.objects.delete(name)
    assert asyncio.run(ask()) == (404, "urn:odf-node:problem:object-absent")


def test_other_columns_are_said_to_be_the_difference(tmp_path: Path, theirs: bytes) -> None:
    with pytest.raises(RejectedError, match="LH1-18"):
        locate(tmp_path, theirs, table(rows=10).drop_columns(["c0"]))


@pytest.mark.parametrize(
    "ask", ["", "x", "1.2", "-1.1.0", "0.0.0", "0.99.0", "9.1.0", "c.1.9", ",".join(["c.1.0"] * 65)]
)
def test_question_about_no_node_is_rejected(tmp_path: Path, theirs: bytes, ask: str) -> None:
    node = TestNode.create(tmp_path / "served")
    content = parquet_bytes(table(rows=10))
    node.keep(Chain().add(content))

    async def status() -> int:
        import aiohttp

        async with node.serving() as address, aiohttp.ClientSession() as session:
            url = f"{address}/_odf/v1/datasets/demo.data/trees/{Multihash.of_sha3_256(content)}/nodes"
            async with session.get(url, params={"ask": ask}) as reply:
                return reply.status

    assert asyncio.run(status()) in {400, 422}


@pytest.mark.parametrize("lie", ["root", "children", "count", "rubbish"])
def test_server_that_lies_about_its_tree_is_caught(tmp_path: Path, lie: str) -> None:
    mine, other = tmp_path / "mine.parquet", tmp_path / "other.parquet"
    mine.write_bytes(parquet_bytes(table(rows=10_000)))
    other.write_bytes(parquet_bytes(table((1, 1), rows=10_000)))
    summary = summarise(other)
    root = Multihash.of_sha3_256(b"x") if lie == "root" else summary.root
    header = TreeHeader(
        root=str(root), row_count=summary.row_count, schema=summary.schema, columns_top=summary.columns_top
    )
    nodes = TreeNodes(children=() if lie == "count" else ((b"\x00" * 32,) * COLUMNS,))
    stated = b"{}" if lie == "rubbish" else encode_message(nodes)
    asked = Multihash.of_sha3_256(b"slice")

    async def ask() -> None:
        scripts = {f"/trees/{asked}": answer(encode_message(header)), "ask=c.1.0": answer(stated)}
        async with hostile_peer(scripts) as peer:
            await locate_difference(f"{peer.url}/demo.data", asked, summarise(mine))

    with pytest.raises((RejectedError, PeerLiedError, MalformedError)):
        asyncio.run(ask())
