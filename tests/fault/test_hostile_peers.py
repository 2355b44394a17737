"""Peers that lie, stall, flood or break off: ended in time, named, and nothing is left (EX-11 to EX-15)."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.ports.peer_client import PeerDataset, PeerSpeaks
from odf_node.ports.peer_errors import PeerForbidsError, PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted
from odf_protocol.exchange.limits import MAX_BLOCK_SIZE_BYTES, MAX_JSON_BYTES
from odf_protocol.exchange.messages import HeadAnswer, HeadMessage, NodeInfo, encode_message
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.head import Head
from support.event_loop import in_loop
from support.exchange_nodes import NOON, Chain, TestNode, read_kamu_chain
from support.hostile_peer import (
    HostilePeer,
    Script,
    answer,
    chunked,
    cut_after,
    endless,
    hostile_peer,
    in_turn,
    not_found,
    raw_bytes,
    redirect,
    stall_after,
)

QUICK = ClientSettings(attempts=3, backoff_s=0.001)
# For peers that stall, and for no others: who is patient waits for a busy machine too.
IMPATIENT = replace(QUICK, stall_s=0.3, message_s=1.0)
OBJECT = os.urandom(3_000_000)
CHAIN = Chain("demo.data").add(OBJECT)
WANTED = next(iter_wanted(CHAIN.blocks[1].event))
OBJECT_PATH = f"/data/{WANTED.hash}"
INFO = encode_message(NodeInfo(node_id=None, software="liar", protocol_versions=(1,), takes_pushes=False))
JSON = {"Content-Type": "application/json"}
PLAIN: Mapping[str, Script] = {
    "/refs/head": answer(str(CHAIN.head.hash).encode()),
    **{f"/blocks/{block.hash}": answer(block.raw) for block in CHAIN.blocks},
}


@asynccontextmanager
async def peer_at(
    scripts: Mapping[str, Script], settings: ClientSettings = QUICK
) -> AsyncIterator[tuple[PeerDataset, HostilePeer]]:
    async with (
        hostile_peer({**PLAIN, **scripts}) as hostile,
        await open_peer(f"{hostile.url}/demo.data", settings) as peer,
    ):
        yield peer, hostile


class Store:
    """A store to download into, and what must hold of it afterwards."""

    def __init__(self, tmp_path: Path) -> None:
        self.node = TestNode.create(tmp_path / "home")
        self.reported_bytes = 0
        self._reported = asyncio.Event()

    async def fetch(self, peer: PeerDataset, *wanted: WantedObject) -> None:
        def tell(size_bytes: int) -> None:
            self.reported_bytes += size_bytes
            self._reported.set()

        with self.node.objects.writing():
            await peer.fetch_objects(wanted, self.node.objects, tell)

    async def arrived(self, size_bytes: int) -> None:
        while self.reported_bytes < size_bytes:
            self._reported.clear()
            await self._reported.wait()

    def kept_bytes(self) -> int:
        return sum(part.stat().st_size for part in self.node.home.downloads.iterdir())

    def assert_nothing_accepted(self) -> None:
        assert list(self.node.objects.iter_hashes()) == []
        assert [path.name for path in self.node.home.staging.iterdir() if path.name.startswith("object-")] == []


# Objects


@in_loop
async def test_object_of_the_right_bytes_arrives_and_is_counted_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: answer(OBJECT)}) as (peer, _):
        await store.fetch(peer, WANTED, WANTED)
    store.node.objects.check(WANTED.hash)
    assert store.reported_bytes == len(OBJECT)


@pytest.mark.parametrize("cuts", [1, 2, 4])
@in_loop
async def test_cut_download_goes_on_where_it_stopped(tmp_path: Path, cuts: int) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: cut_after(OBJECT, 700_000, times=cuts)}) as (peer, hostile):
        await store.fetch(peer, WANTED)
    store.node.objects.check(WANTED.hash)
    starts = [request.range_start for request in hostile.requests if request.path.endswith(OBJECT_PATH)]
    assert starts == [None, *(700_000 * n for n in range(1, cuts + 1))]
    assert store.reported_bytes == len(OBJECT)


@in_loop
async def test_download_that_is_cut_for_good_is_kept_for_the_next_process(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: in_turn(cut_after(OBJECT, 900_000), cut_after(OBJECT, 0))}) as (peer, _):
        with pytest.raises(PeerUnavailableError, match="what arrived is kept"):
            await store.fetch(peer, WANTED)
    assert store.kept_bytes() == 900_000
    store.assert_nothing_accepted()
    async with peer_at({OBJECT_PATH: cut_after(OBJECT, 0, times=0)}) as (peer, hostile):
        await store.fetch(peer, WANTED)
    assert hostile.requests[-1].range_start == 900_000
    store.node.objects.check(WANTED.hash)


@in_loop
async def test_server_that_ignores_ranges_is_read_from_the_start_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: in_turn(cut_after(OBJECT, 900_000), answer(OBJECT))}) as (peer, hostile):
        await store.fetch(peer, WANTED)
    assert hostile.requests[-1].range_start == 900_000
    store.node.objects.check(WANTED.hash)
    assert store.reported_bytes == len(OBJECT)


@in_loop
async def test_server_that_cuts_at_the_same_place_for_ever_is_given_up(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: cut_after(OBJECT, 900_000, ranges=False)}) as (peer, hostile):
        with pytest.raises(PeerUnavailableError):
            await store.fetch(peer, WANTED)
    assert len([path for path in hostile.paths() if path.endswith(OBJECT_PATH)]) <= QUICK.attempts + 1
    store.assert_nothing_accepted()


@in_loop
async def test_bytes_kept_from_elsewhere_that_are_wrong_are_thrown_away_and_fetched_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.node.objects.writing(), store.node.objects.resume(WANTED.hash) as staged:
        staged.write(b"rubbish" * 1000)
    async with peer_at({OBJECT_PATH: cut_after(OBJECT, 0, times=0)}) as (peer, _):
        await store.fetch(peer, WANTED)
    store.node.objects.check(WANTED.hash)


@pytest.mark.parametrize("extra_bytes", [0, 10], ids=["as-many-as-the-object", "more-than-the-object"])
@in_loop
async def test_wrong_bytes_kept_at_full_length_are_fetched_again(tmp_path: Path, extra_bytes: int) -> None:
    store = Store(tmp_path)
    with store.node.objects.writing(), store.node.objects.resume(WANTED.hash) as staged:
        staged.write(b"x" * (len(OBJECT) + extra_bytes))
    async with peer_at({OBJECT_PATH: answer(OBJECT)}) as (peer, _):
        await store.fetch(peer, WANTED)
    store.node.objects.check(WANTED.hash)
    assert store.reported_bytes == len(OBJECT)


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        pytest.param(answer(b"y" * len(OBJECT)), "object-hash", id="other-bytes"),
        pytest.param(answer(OBJECT + b"more"), "object-size", id="longer"),
        pytest.param(answer(OBJECT[:-1]), "object-size", id="shorter"),
        pytest.param(answer(b"", length=10**15), "object-size", id="says-a-petabyte"),
        pytest.param(chunked(OBJECT + b"more"), "object-size", id="longer-without-saying"),
        pytest.param(chunked(OBJECT[:-1]), "object-size", id="shorter-without-saying"),
        pytest.param(endless(), "object-size", id="endless"),
    ],
)
@in_loop
async def test_peer_that_lies_about_an_object_is_named_and_nothing_is_kept(
    tmp_path: Path, script: Script, rule: str
) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: script}) as (peer, hostile):
        with pytest.raises(PeerLiedError, match=rule) as lie:
            await store.fetch(peer, WANTED)
    assert lie.value.url == f"{hostile.url}/demo.data{OBJECT_PATH}"
    assert len([path for path in hostile.paths() if path.endswith(OBJECT_PATH)]) == 1  # a liar is not asked again
    store.assert_nothing_accepted()


@pytest.mark.parametrize(
    "content_range",
    [
        pytest.param("bytes 0-2999999/3000000", id="another-part"),
        pytest.param("nonsense", id="nonsense"),
        pytest.param("bytes 900000-2999999/4000000", id="another-size"),
    ],
)
@in_loop
async def test_part_that_is_not_the_one_asked_for_is_rejected(tmp_path: Path, content_range: str) -> None:
    store = Store(tmp_path)
    part = answer(OBJECT[900_000:], status="206 Partial Content", headers={"Content-Range": content_range})
    async with peer_at({OBJECT_PATH: in_turn(cut_after(OBJECT, 900_000), part)}) as (peer, _):
        with pytest.raises(PeerLiedError):
            await store.fetch(peer, WANTED)
    store.assert_nothing_accepted()


@in_loop
async def test_object_that_is_gone_is_not_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({}) as (peer, _):
        with pytest.raises(PeerNotFoundError, match="no such object"):
            await store.fetch(peer, WANTED)
    store.assert_nothing_accepted()


@in_loop
async def test_stalled_download_is_ended_and_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: stall_after(OBJECT, 500_000)}, IMPATIENT) as (peer, _):
        with pytest.raises(PeerUnavailableError, match="stopped answering"):
            await store.fetch(peer, WANTED)
    store.assert_nothing_accepted()


@in_loop
async def test_compressed_object_is_rejected_unread(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: answer(b"x", headers={"Content-Encoding": "gzip"})}) as (peer, _):
        with pytest.raises(MalformedError, match="Content-Encoding"):
            await store.fetch(peer, WANTED)


@in_loop
async def test_download_that_is_cancelled_keeps_what_arrived_and_leaves_no_thread_writing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    async with peer_at({OBJECT_PATH: stall_after(OBJECT, 2_000_000)}) as (peer, _):
        task = asyncio.create_task(store.fetch(peer, WANTED))
        await store.arrived(2_000_000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert store.kept_bytes() == 2_000_000
    store.assert_nothing_accepted()


@in_loop
async def test_one_lie_ends_all_downloads_of_the_dataset(tmp_path: Path) -> None:
    chain = Chain("demo.data").add(OBJECT).add(b"honest")
    wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
    store = Store(tmp_path)
    scripts = {
        OBJECT_PATH: stall_after(OBJECT, 10),
        f"/data/{wanted[1].hash}": answer(b"HONEST"),
    }
    async with peer_at(scripts) as (peer, _):
        with pytest.raises(PeerLiedError):
            await store.fetch(peer, *wanted)
    store.assert_nothing_accepted()


# Messages of our exchange


def exchange(scripts: Mapping[str, Script]) -> dict[str, Script]:
    return {"/_odf/v1/node": answer(INFO, headers=JSON), **scripts}


def pack_of(*blocks: bytes) -> Script:
    return answer(encode_pack(PackedBlock(raw) for raw in blocks)[0])


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(answer(b"{}", headers=JSON), id="fields-missing"),
        pytest.param(answer(b"[" * 100_000, headers=JSON), id="deep"),
        pytest.param(answer(b"x", length=MAX_JSON_BYTES + 1), id="says-too-much"),
        pytest.param(endless(b" " * 65_536, headers=JSON), id="endless"),
        pytest.param(raw_bytes(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), id="not-http"),
        pytest.param(raw_bytes(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"), id="endless-header"),
        pytest.param(answer(b"", status="418 Teapot"), id="status-that-means-nothing-here"),
    ],
)
@in_loop
async def test_head_that_cannot_be_read_is_rejected(script: Script) -> None:
    async with peer_at(exchange({"/_odf/v1/datasets/demo.data/head": script})) as (peer, _):
        with pytest.raises(MalformedError):
            await peer.get_head()


@in_loop
async def test_head_comes_with_name_kind_and_document() -> None:
    stated = HeadAnswer(
        dataset_id=str(CHAIN.id), name="theirs", kind="Derivative", head=HeadMessage.of(CHAIN.head), signed_head=b"doc"
    )
    scripts = exchange({"/_odf/v1/datasets/demo.data/head": answer(encode_message(stated), headers=JSON)})
    async with peer_at(scripts) as (peer, _):
        head = await peer.get_head()
        assert (head.head, head.name, head.signed_head, head.dataset_id) == (CHAIN.head, "theirs", b"doc", CHAIN.id)
        assert peer.description.speaks is PeerSpeaks.EXCHANGE


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param(pack_of(), PeerLiedError, id="none"),
        pytest.param(pack_of(*[CHAIN.blocks[0].raw] * 3), PeerLiedError, id="more-than-asked-for"),
        pytest.param(answer(b"rubbish"), MalformedError, id="no-pack"),
        pytest.param(answer(b"", length=10**12), MalformedError, id="says-a-terabyte"),
        pytest.param(endless(), MalformedError, id="endless"),
        pytest.param(cut_after(b"x" * 1000, 10), PeerUnavailableError, id="cut"),
        pytest.param(answer(b"", status="503 Busy"), PeerUnavailableError, id="busy"),
        pytest.param(answer(b"", status="401 Unauthorized"), PeerForbidsError, id="wants-a-token"),
        pytest.param(not_found, PeerNotFoundError, id="unpublished-meanwhile"),
    ],
)
@in_loop
async def test_pack_that_is_not_what_was_asked_for_ends_the_pull(script: Script, kind: type[Exception]) -> None:
    async with peer_at(exchange({"after=-1&upto=1": script})) as (peer, _):
        with pytest.raises(kind):
            _ = [block async for block in peer.iter_blocks(after=None, upto=CHAIN.head)]


@in_loop
async def test_pack_that_stalls_ends_the_pull() -> None:
    async with peer_at(exchange({"after=-1&upto=1": stall_after(b"x" * 1000, 10)}), IMPATIENT) as (peer, _):
        with pytest.raises(PeerUnavailableError):
            _ = [block async for block in peer.iter_blocks(after=None, upto=CHAIN.head)]


@in_loop
async def test_message_that_fails_for_a_moment_is_asked_for_again() -> None:
    raws = [block.raw for block in CHAIN.blocks]
    flaky = in_turn(cut_after(b"x" * 1000, 10), answer(b"", status="503 Busy"), pack_of(*raws))
    async with peer_at(exchange({"after=-1&upto=1": flaky})) as (peer, _):
        assert [block.raw async for block in peer.iter_blocks(after=None, upto=CHAIN.head)] == raws


@in_loop
async def test_chain_that_never_ends_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peer_at(exchange({})) as (peer, hostile):
        asked = len(hostile.requests)
        with pytest.raises(UnsupportedError, match="length"):
            _ = [block async for block in peer.iter_blocks(after=None, upto=Head(10**12, CHAIN.head.hash))]
        assert len(hostile.requests) == asked
    monkeypatch.setattr("odf_node.adapters.exchange_peer.MAX_PULL_BYTES", 1000)
    async with peer_at(exchange({"upto=9": pack_of(b"x" * 600, b"y" * 600)})) as (peer, _):
        with pytest.raises(UnsupportedError, match="bytes of blocks"):
            _ = [block async for block in peer.iter_blocks(after=None, upto=Head(9, CHAIN.head.hash))]


@in_loop
async def test_attestations_that_never_end_are_rejected() -> None:
    page = answer(b'{"attestations":["QUFB"],"next_skip":0}', headers=JSON)
    async with peer_at(exchange({"/attestations?skip=0": page})) as (peer, _):
        with pytest.raises(PeerLiedError):
            await peer.list_attestations(limit=2)


@in_loop
async def test_no_more_attestations_are_taken_than_were_asked_for() -> None:
    page = answer(b'{"attestations":["QUFB","QkJC"],"next_skip":2}', headers=JSON)
    async with peer_at(exchange({"/attestations?skip=0": page})) as (peer, hostile):
        assert await peer.list_attestations(limit=1) == (b"AAA",)
        assert len([path for path in hostile.paths() if "attestations" in path]) == 1


@in_loop
async def test_server_of_another_kind_that_answers_everything_is_read_as_a_plain_one() -> None:
    page = answer(b"<html>hello</html>", headers={"Content-Type": "text/html"})
    for info in (page, answer(b"{}", headers=JSON), endless(), redirect("http://elsewhere.example/")):
        async with peer_at({"/_odf/v1/node": info}) as (peer, _):
            assert peer.description.speaks is PeerSpeaks.SIMPLE
            assert (await peer.get_head()).head == CHAIN.head


# Plain servers


@pytest.mark.parametrize(
    ("scripts", "kind"),
    [
        pytest.param({"/refs/head": answer(b"not a hash")}, MalformedError, id="no-hash"),
        pytest.param({"/refs/head": answer(b"\xff" * 69)}, MalformedError, id="no-text"),
        pytest.param({"/refs/head": answer(b"f" * 4096)}, MalformedError, id="endless-hash"),
        pytest.param({"/refs/head": not_found}, PeerNotFoundError, id="no-dataset"),
        pytest.param({f"/blocks/{CHAIN.head.hash}": answer(b"rubbish")}, MalformedError, id="other-bytes"),
        pytest.param({f"/blocks/{CHAIN.head.hash}": not_found}, PeerNotFoundError, id="block-missing"),
        pytest.param(
            {f"/blocks/{CHAIN.head.hash}": answer(b"", length=MAX_BLOCK_SIZE_BYTES + 1)}, MalformedError, id="huge"
        ),
    ],
)
@in_loop
async def test_plain_head_that_is_none_is_rejected(scripts: dict[str, Script], kind: type[Exception]) -> None:
    async with peer_at(scripts) as (peer, _):
        with pytest.raises(kind):
            await peer.get_head()


@in_loop
async def test_walk_gives_the_blocks_after_the_known_one_oldest_first() -> None:
    chain = read_kamu_chain("countries.daily")
    scripts = {f"/blocks/{block.hash}": answer(block.raw) for block in chain.blocks}
    known = chain.blocks[3]
    async with peer_at(scripts) as (peer, hostile):
        found = [b async for b in peer.iter_blocks(after=Head(3, known.hash), upto=chain.head)]
        assert [block.raw for block in found] == [block.raw for block in chain.blocks[4:]]
        assert f"/demo.data/blocks/{known.hash}" not in hostile.paths()


@in_loop
async def test_walk_over_numbers_that_do_not_fit_is_rejected() -> None:
    async with peer_at({}) as (peer, _):
        with pytest.raises(PeerLiedError, match="EX-15"):
            _ = [b async for b in peer.iter_blocks(after=None, upto=Head(7, CHAIN.head.hash))]


@in_loop
async def test_walk_longer_than_the_limit_is_rejected_before_it_begins() -> None:
    async with peer_at({}) as (peer, hostile):
        asked = len(hostile.requests)
        with pytest.raises(UnsupportedError, match="length"):
            _ = [b async for b in peer.iter_blocks(after=None, upto=Head(10**9, CHAIN.head.hash))]
        assert len(hostile.requests) == asked


@in_loop
async def test_head_with_a_newline_is_read() -> None:
    async with peer_at({"/refs/head": answer(f"{CHAIN.head.hash}\n".encode())}) as (peer, _):
        assert (await peer.get_head()).head == CHAIN.head


# Redirects and addresses


@in_loop
async def test_redirect_on_the_same_host_is_followed() -> None:
    async with peer_at({"/refs/head": redirect("/elsewhere/head"), "/elsewhere/head": PLAIN["/refs/head"]}) as (
        peer,
        _,
    ):
        assert (await peer.get_head()).head == CHAIN.head


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://localhost:1/",
        "http://127.0.0.1:1/refs/head",
        "https://127.0.0.1/",
        "file:///etc/passwd",
        "//other.example/refs/head",
        "ftp://127.0.0.1/",
        "http://[::1",
        "",
    ],
)
@in_loop
async def test_redirect_to_anywhere_else_is_not_followed(target: str) -> None:
    async with peer_at({"/refs/head": redirect(target)}) as (peer, _):
        with pytest.raises((UnsupportedError, MalformedError)):
            await peer.get_head()


@in_loop
async def test_redirects_in_a_circle_are_left() -> None:
    async with peer_at({"/refs/head": redirect("/demo.data/refs/head")}) as (peer, hostile):
        with pytest.raises(UnsupportedError, match="redirects"):
            await peer.get_head()
        assert len([path for path in hostile.paths() if path.endswith("/refs/head")]) <= 4


@in_loop
async def test_token_is_sent_to_the_peer_and_not_along_a_redirect() -> None:
    async with hostile_peer({}) as other:
        scripts = {"/refs/head": redirect(f"{other.url}/refs/head")}
        async with peer_at(scripts, replace(QUICK, token="secret")) as (peer, hostile):
            with pytest.raises(UnsupportedError):
                await peer.get_head()
            assert all("Authorization: Bearer secret" in request.head for request in hostile.requests)
            assert other.requests == []


@pytest.mark.parametrize(
    ("address", "kind", "reported"),
    [
        ("http://127.0.0.1:1/demo", PeerUnavailableError, "no server answers there"),
        ("http://no-such-host.invalid/demo", PeerUnavailableError, "no such host"),
        ("https://127.0.0.1:1/demo", PeerUnavailableError, "no server answers there"),
        ("http://127.0.0.1:99999/demo", MalformedError, "address"),
        ("http://host", MalformedError, "dataset's name"),
        ("http://user:password@host/demo", MalformedError, "password"),
        ("ftp://host/demo", UnsupportedError, "ftp"),
        ("s3://bucket", MalformedError, "bucket"),
        ("demo", UnsupportedError, "demo"),
        ("file://server/share", MalformedError, "file:///"),
    ],
)
@in_loop
async def test_address_that_leads_nowhere_is_said_at_once(address: str, kind: type[Exception], reported: str) -> None:
    began = time.monotonic()
    with pytest.raises(kind, match=reported):
        await open_peer(address, replace(QUICK, attempts=1000, backoff_s=1.0))
    # Far below what a second try and all that follow take; to learn that there is no such host takes its time too.
    assert time.monotonic() - began < 100


@in_loop
async def test_https_address_of_a_server_without_it_is_explained(tmp_path: Path) -> None:
    async with TestNode.create(tmp_path / "home").serving() as url:
        with pytest.raises(PeerUnavailableError, match="whether the address is https or http"):
            await open_peer(url.replace("http:", "https:") + "/demo", QUICK)


# Folders


def write_folder(folder: Path, chain: Chain) -> Path:
    for name in ("refs", "blocks", "data", "checkpoints"):
        (folder / name).mkdir(parents=True)
    for block in chain.blocks:
        (folder / "blocks" / str(block.hash)).write_bytes(block.raw)
    for block in chain.blocks:
        for item in iter_wanted(block.event):
            (folder / item.kind.value / str(item.hash)).write_bytes(chain.objects[item.hash])
    (folder / "refs/head").write_text(str(chain.head.hash))
    return folder


async def pull_all(address: str, store: Store) -> list[Any]:
    async with await open_peer(address, QUICK) as peer:
        head = await peer.get_head()
        blocks = [block async for block in peer.iter_blocks(after=None, upto=head.head)]
        from odf_protocol.block import decode_block

        wanted = [item for b in blocks for item in iter_wanted(decode_block(b.raw, expected_hash=None).event)]
        await store.fetch(peer, *wanted)
        return blocks


@pytest.mark.parametrize("form", ["file://{}", "{}", "{}/"])
@in_loop
async def test_folder_is_read_by_url_and_by_path(tmp_path: Path, form: str) -> None:
    chain = Chain("demo.data").add(OBJECT, b"checkpoint").add(b"second")
    folder = write_folder(tmp_path / "some where" / "demo.data", chain)
    address = form.format(str(folder).replace(" ", "%20") if form.startswith("file") else folder)
    store = Store(tmp_path)
    blocks = await pull_all(address, store)
    assert [block.raw for block in blocks] == [block.raw for block in chain.blocks]
    for object_hash in chain.objects:
        store.node.objects.check(object_hash)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        pytest.param(lambda path: path.unlink(), PeerNotFoundError, id="missing"),
        pytest.param(lambda path: path.write_bytes(OBJECT + b"x"), PeerLiedError, id="longer"),
        pytest.param(lambda path: path.write_bytes(b"y" * len(OBJECT)), PeerLiedError, id="other-bytes"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), MalformedError, id="a-folder"),
        pytest.param(lambda path: (path.unlink(), os.mkfifo(path)), MalformedError, id="a-pipe"),
        pytest.param(lambda path: (path.unlink(), path.symlink_to("/dev/zero")), MalformedError, id="a-device"),
    ],
)
@in_loop
async def test_folder_that_holds_something_else_is_rejected(tmp_path: Path, spoil: Any, kind: type[Exception]) -> None:
    folder = write_folder(tmp_path / "demo.data", CHAIN)
    spoil(folder / "data" / str(WANTED.hash))
    store = Store(tmp_path)
    with pytest.raises(kind):
        await pull_all(str(folder), store)
    store.assert_nothing_accepted()


@in_loop
async def test_folder_that_is_none_is_not_found(tmp_path: Path) -> None:
    for address, stated in ((tmp_path / "absent", "no such file or folder"), (tmp_path, "no such dataset is there")):
        async with await open_peer(f"{address}/", QUICK) as peer:
            with pytest.raises(PeerNotFoundError, match=stated):
                await peer.get_head()


# From node to node


@pytest.mark.parametrize("name", ["countries.daily", "types.all", "upsert.accounts", "empty.seed"])
@in_loop
async def test_node_pulls_from_a_node_what_another_implementation_wrote(tmp_path: Path, name: str) -> None:
    chain = read_kamu_chain(name)
    origin, store = TestNode.create(tmp_path / "origin"), Store(tmp_path)
    origin.keep(chain)
    async with origin.serving() as url:
        blocks = await pull_all(f"{url}/{name}", store)
        assert [block.raw for block in blocks] == [block.raw for block in chain.blocks]
        for object_hash in chain.objects:
            store.node.objects.check(object_hash)
    assert store.node.objects.sweep(lambda: (), now=NOON).objects == len(chain.objects)
