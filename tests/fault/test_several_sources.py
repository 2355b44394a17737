"""One object from several nodes at once: a bad range costs one MiB, and one honest node is enough (EX-40, EX-41)."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.peer_addresses import open_peer, open_peers
from odf_node.adapters.several_peers import SHARED_BYTES, SeveralPeers
from odf_node.adapters.several_sources import Source, fetch_from_several
from odf_node.http.server import create_app
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerPreparesError, PeerUnavailableError
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted
from odf_protocol.exchange.object_parts import HASH_BYTES, LEAF_BYTES, HashTree, count_leaves, leaf_hash
from odf_protocol.exchange.routes import ObjectKind, leaves_path, object_path
from odf_protocol.multihash import Multihash
from support.event_loop import in_loop
from support.exchange_nodes import Chain, TestNode, serving
from support.hostile_peer import Request, Script, answer, hostile_peer, stall_after

DATA = os.urandom(6 * LEAF_BYTES + 12_345)
HASH = Multihash.of_sha3_256(DATA)
ITEM = WantedObject(ObjectKind.DATA, HASH, len(DATA))
HASTY = ClientSettings(attempts=1, backoff_s=0.01)
# For peers that stall, and for no others: who is patient waits for a busy machine too.
IMPATIENT = replace(HASTY, stall_s=0.3)
STALLS = stall_after(DATA, 100)


def leaves(data: bytes) -> bytes:
    return b"".join(leaf_hash(data[start : start + LEAF_BYTES]) for start in range(0, len(data), LEAF_BYTES))


def ranges(data: bytes) -> Script:
    """Answer ranges of these bytes."""

    async def script(request: Request, writer: object) -> None:
        assert request.range_start is not None
        part = data[request.range_start : request.range_start + LEAF_BYTES]
        stated = f"bytes {request.range_start}-{request.range_start + len(part) - 1}/{len(data)}"
        await answer(part, status="206 Partial Content", headers={"Content-Range": stated})(request, writer)  # type: ignore[arg-type]

    return script


def flipped(data: bytes, leaf: int) -> bytes:
    position = leaf * LEAF_BYTES + 5
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@asynccontextmanager
async def sources(*scripts: tuple[Script, Script]) -> AsyncIterator[list[Source]]:
    """Hostile peers by the scripts of their tree and their object."""
    async with AsyncExitStack() as stack:
        made = []
        for tree, data in scripts:
            peer = await stack.enter_async_context(hostile_peer({f"/leaves/{HASH}": tree, f"/data/{HASH}": data}))
            client = await stack.enter_async_context(HttpClient(IMPATIENT if data is STALLS else HASTY))
            base = URL(peer.url) / "demo.data"
            made.append(
                Source(client, base / object_path(ITEM.kind, HASH), URL(peer.url) / leaves_path("demo.data", HASH))
            )
        yield made


HONEST = (answer(leaves(DATA)), ranges(DATA))


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def fetch(tmp_path: Path, made: list[Source]) -> TestNode:
    node = TestNode.create(tmp_path / "home")
    got: list[int] = []
    with node.objects.writing():
        await fetch_from_several(made, ITEM, node.objects, tmp_path, got.append)
    assert sum(got) == len(DATA)
    node.objects.check(HASH)
    assert names_in(tmp_path) == ["home"]
    return node


@in_loop
async def test_all_honest_peers_send_a_part(tmp_path: Path) -> None:
    async with sources(HONEST, HONEST, HONEST) as made:
        await fetch(tmp_path, made)
        assert sum(source.sent for source in made) == count_leaves(len(DATA)) == 7
        assert all(source.sent for source in made)


@in_loop
async def test_peer_with_one_bad_range_is_put_aside_at_it(tmp_path: Path) -> None:
    liar = (
        answer(leaves(DATA)),
        ranges(b"".join(flipped(DATA, leaf)[leaf * LEAF_BYTES :][:LEAF_BYTES] for leaf in range(7))),
    )
    async with sources(liar, HONEST) as made:
        await fetch(tmp_path, made)
        assert made[0].sent == 0
        assert "EX-40 range" in str(made[0].lie)
        assert made[1].lie is None


@in_loop
async def test_group_whose_leaves_are_wrong_is_put_aside_when_all_is_there(tmp_path: Path) -> None:
    other = flipped(DATA, 3)
    conspirators = (answer(leaves(other)), ranges(other))
    async with sources(conspirators, conspirators, HONEST) as made:
        await fetch(tmp_path, made)
        assert ["EX-40 hash-tree" in str(source.lie) for source in made] == [True, True, False]


@pytest.mark.parametrize(
    "data",
    [
        STALLS,
        answer(b"", status="500 Internal Server Error"),
        answer(b"x", status="206 Partial Content", headers={"Content-Range": "bytes 7-7/9"}),
        answer(DATA),
        answer(DATA[:100], status="206 Partial Content", length=LEAF_BYTES),
    ],
    ids=["stalls", "fails", "another-range", "whole-instead", "cut"],
)
@in_loop
async def test_peer_that_does_not_deliver_leaves_its_part_to_the_others(tmp_path: Path, data: Script) -> None:
    async with sources((answer(leaves(DATA)), data), HONEST) as made:
        await fetch(tmp_path, made)
        assert (made[0].sent, made[1].sent) == (0, 7)


@pytest.mark.parametrize(
    "tree", [answer(b"short"), answer(leaves(DATA) + bytes(32)), answer(b"", status="404 Not Found")]
)
@in_loop
async def test_peer_without_a_list_that_fits_is_not_asked(tmp_path: Path, tree: Script) -> None:
    async with sources((tree, ranges(DATA)), HONEST) as made:
        await fetch(tmp_path, made)
        assert made[0].sent == 0


@in_loop
async def test_without_an_honest_peer_nothing_is_kept(tmp_path: Path) -> None:
    liar = (answer(leaves(DATA)), ranges(flipped(DATA, 0)))
    node = TestNode.create(tmp_path / "home")
    async with sources(liar, (answer(leaves(DATA)), answer(b"", status="500 Oops"))) as made:
        with node.objects.writing(), pytest.raises((PeerUnavailableError, PeerLiedError)):
            await fetch_from_several(made, ITEM, node.objects, tmp_path)
    assert not node.objects.has(HASH)
    assert names_in(tmp_path) == ["home"]


@in_loop
async def test_nodes_of_our_kind_give_leaves_and_share_the_work(tmp_path: Path) -> None:
    chain = Chain("demo.data").add(DATA, b"small checkpoint")
    assert len(DATA) > SHARED_BYTES
    async with AsyncExitStack() as stack:
        urls = []
        for number in range(3):
            node = TestNode.create(tmp_path / f"home-{number}")
            node.keep(chain)
            urls.append(f"{await stack.enter_async_context(node.serving())}/demo.data")
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{urls[0].removesuffix('/demo.data')}/{leaves_path('demo.data', HASH)}") as got,
        ):
            assert await got.read() == leaves(DATA)
        copy = TestNode.create(tmp_path / "copy")
        wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
        async with await open_peers(urls, lambda _: HASTY, tmp_path / "copy/staging") as peer:
            assert isinstance(peer, SeveralPeers)
            assert (await peer.get_head()).head == chain.head
            with copy.objects.writing():
                await peer.fetch_objects(wanted, copy.objects)
            assert peer.lies == ()
        assert set(copy.objects.iter_hashes()) == set(chain.objects)


def test_tree_that_does_not_fit_the_size_is_rejected() -> None:
    assert HashTree(leaves(DATA), len(DATA)).matches(6, DATA[6 * LEAF_BYTES :])
    assert not HashTree(leaves(DATA), len(DATA)).matches(0, DATA[1 : LEAF_BYTES + 1])
    assert len(HashTree(b"", 0)) == 0
    with pytest.raises(MalformedError):
        HashTree(leaves(DATA)[:-HASH_BYTES], len(DATA))


@in_loop
async def test_dataset_that_a_node_does_not_have_is_told_with_what_shows_those_it_has(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    async with node.serving() as url, await open_peer(f"{url}/nothing", HASTY) as peer:
        with pytest.raises(PeerNotFoundError, match=f"^{url}/nothing: no such dataset.*'odf-node list {url}'"):
            await peer.get_head()


@in_loop
async def test_node_that_holds_the_metadata_alone_is_no_bad_source(tmp_path: Path) -> None:
    chain = Chain("demo.data").add(DATA, b"small checkpoint")
    async with AsyncExitStack() as stack:
        urls = []
        for number in range(2):
            node = TestNode.create(tmp_path / f"home-{number}")
            node.keep(chain)
            if number == 0:
                node.store.mark_absent(chain.id, chain.objects)
                for each in chain.objects:
                    node.objects.delete(each)
            urls.append(f"{await stack.enter_async_context(node.serving())}/demo.data")
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{urls[0]}/{object_path(ITEM.kind, HASH)}") as got,
        ):
            assert got.status == 404
            assert (await got.json(content_type=None))["type"] == "urn:odf-node:problem:object-absent"
        wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
        copy = TestNode.create(tmp_path / "copy")
        async with await open_peers(urls[:1], lambda _: HASTY, tmp_path / "copy/staging") as peer:
            with copy.objects.writing(), pytest.raises(PeerNotFoundError, match="without this file"):
                await peer.fetch_objects(wanted, copy.objects)
        async with await open_peers(urls, lambda _: HASTY, tmp_path / "copy/staging") as peer:
            assert isinstance(peer, SeveralPeers)
            with copy.objects.writing():
                await peer.fetch_objects(wanted, copy.objects)
            assert peer.lies == ()
        assert set(copy.objects.iter_hashes()) == set(chain.objects)


class SlowDesk:
    """Brings an object back after it was asked for some times."""

    def __init__(self, node: TestNode, asks: int) -> None:
        self.node = node
        self.asks = asks

    def request(self, record: object) -> bool:
        self.asks -= 1
        if self.asks == 0:
            self.node.put_objects([DATA])
        return True


@in_loop
async def test_node_that_computes_an_object_again_is_waited_for(tmp_path: Path) -> None:
    chain = Chain("demo.data").add(DATA)
    node = TestNode.create(tmp_path / "home")
    node.keep(chain)
    node.store.mark_absent(chain.id, chain.objects)
    wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
    copy = TestNode.create(tmp_path / "copy")
    quick = replace(HASTY, max_backoff_s=0.01)
    for asks, patience_s in ((10**6, 0.0), (4, 60.0)):
        node.objects.delete(HASH)
        served = replace(node.served, rebuilds=SlowDesk(node, asks))
        async with (
            serving(create_app(served)) as address,
            await open_peer(f"{address}/demo.data", replace(quick, prepare_s=patience_s)) as peer,
        ):
            with copy.objects.writing():
                if patience_s:
                    await peer.fetch_objects(wanted, copy.objects)
                else:
                    with pytest.raises(PeerPreparesError):
                        await peer.fetch_objects(wanted, copy.objects)
    assert set(copy.objects.iter_hashes()) == set(chain.objects)
