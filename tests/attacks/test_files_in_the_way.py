"""Files of a dataset that are no plain files, or not what they should be: rejected with the reason, never passed over.

A dataset of a node whose key was changed lies in a folder, in an archive, or on a plain web server. Whoever changes one
file of it must not bring a reader to take it as if that file were not there (LAYOUT-9).
"""

import asyncio
import os
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.layout_places import find_layout_target
from odf_node.composition import Node
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_protocol.errors import MalformedError, OdfError
from support.http_server import serving
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain


def make_pipe(place: Path) -> None:
    os.mkfifo(place)


def make_device(place: Path) -> None:
    try:
        os.mknod(place, 0o20666, os.makedev(1, 5))  # /dev/zero: endless
    except PermissionError:
        pytest.skip("only the administrator makes devices")


def make_link_outside(place: Path) -> None:
    secret = place.parents[2] / "secret"
    secret.write_bytes(b'{"events":[]}')
    place.symlink_to(secret)


def make_link_to_nowhere(place: Path) -> None:
    place.symlink_to("nowhere")


def make_endless_link(place: Path) -> None:
    place.symlink_to("/dev/zero")


def make_too_long(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(100_000_000)


OBSTACLES: dict[str, Callable[[Path], None]] = {
    "pipe": make_pipe,
    "device": make_device,
    "folder": Path.mkdir,
    "link-outside": make_link_outside,
    "link-to-nowhere": make_link_to_nowhere,
    "link-to-a-device": make_endless_link,
    "too-long": make_too_long,
    "no-json": lambda place: place.write_bytes(b"not a log"),
    "a-page": lambda place: place.write_bytes(b"<html>nothing here</html>"),
    "empty": Path.touch,
}


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path)


@pytest.fixture
def folder(tmp_path: Path, chain: PeerChain) -> Path:
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    publisher.keep(chain)
    place = tmp_path / "place" / "cities"
    target = find_layout_target(str(place), "cities")
    assert target is not None
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node:
        record = node.store.find_dataset(chain.id)
        assert record is not None
        asyncio.run(node.exporting.export(record, target, Silence()))
    return place


async def take(home: Path, url: str) -> None:
    with closing(Node(HomeFolder(home), FixedClock(NOW))) as node:
        async with asyncio.timeout(60):
            await node.pulling.pull(PullTarget("it", None, url), PullOptions(), Silence())


def held(home: Path) -> list[str]:
    with closing(Node(HomeFolder(home), FixedClock(NOW))) as node:
        return [record.name for record in node.store.list_datasets()]


def reject(tmp_path: Path, url: str, repair: Callable[[], None]) -> OdfError:
    """Take what is changed, see that it changes nothing, and take it once it is as it was."""
    home = tmp_path / "home"
    with pytest.raises(OdfError) as refused:
        asyncio.run(take(home, url))
    assert held(home) == []
    repair()
    asyncio.run(take(home, url))
    assert held(home) == ["cities"]
    return refused.value


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_key_log_in_a_folder_that_cannot_be_read_is_rejected(tmp_path: Path, folder: Path, obstacle: str) -> None:
    place = folder / "key-log"
    OBSTACLES[obstacle](place)
    repair = place.rmdir if obstacle == "folder" else place.unlink
    assert "key" in str(reject(tmp_path, folder.as_uri(), repair))


@pytest.mark.parametrize("obstacle", [name for name in OBSTACLES if name != "empty"])
@pytest.mark.parametrize("name", ["refs/head", "signatures", "blocks", "signed-heads", "data"])
def test_file_in_a_folder_that_is_something_else_is_rejected(
    tmp_path: Path, folder: Path, name: str, obstacle: str
) -> None:
    place = folder / name
    if not place.is_file():
        place = max(place.iterdir()) if name != "signatures" else next(iter(sorted(place.iterdir())))
    aside = folder / "aside"
    place.rename(aside)
    OBSTACLES[obstacle](place)

    def repair() -> None:
        if obstacle == "folder":
            place.rmdir()
        aside.rename(place)

    reject(tmp_path, folder.as_uri(), repair)


@pytest.mark.parametrize("obstacle", ["pipe", "link-to-nowhere", "empty"])
def test_something_else_in_the_place_of_the_folder_of_signatures_is_rejected(
    tmp_path: Path, folder: Path, obstacle: str
) -> None:
    place, aside = folder / "signatures", folder / "aside"
    place.rename(aside)
    OBSTACLES[obstacle](place)

    def repair() -> None:
        place.unlink()
        aside.rename(place)

    reject(tmp_path, folder.as_uri(), repair)


def test_link_inside_the_folder_is_followed(tmp_path: Path, folder: Path) -> None:
    (folder / "signatures").rename(folder / "kept")
    (folder / "signatures").symlink_to("kept")
    asyncio.run(take(tmp_path / "home", folder.as_uri()))
    assert held(tmp_path / "home") == ["cities"]


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_key_log_in_an_archive_that_is_no_plain_file_is_rejected(tmp_path: Path, folder: Path, kind: bytes) -> None:
    archive, good = tmp_path / "cities.tar", tmp_path / "good.tar"
    for path, is_changed in ((archive, True), (good, False)):
        with tarfile.open(path, "w:") as packed:
            packed.add(folder, "cities")
            if is_changed:
                member = tarfile.TarInfo("cities/key-log")
                member.type, member.linkname = kind, "refs/head"
                packed.addfile(member)
    error = reject(tmp_path, archive.as_uri(), lambda: good.replace(archive))
    assert isinstance(error, OdfError)
    assert "key" in str(error)


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"not a log"), (200, bytes(8_000_000)), (401, b""), (200, b"")],
    ids=["no-json", "too-long", "unauthorized", "empty"],
)
def test_key_log_on_a_web_server_that_cannot_be_read_is_rejected(
    tmp_path: Path, folder: Path, status: int, body: bytes
) -> None:
    absent = False

    async def answer(request: web.Request) -> web.StreamResponse:
        path = folder / request.path.removeprefix("/cities/")
        if request.path.endswith("/key-log") and not absent:
            return web.Response(status=status, body=body)
        return web.FileResponse(path) if path.is_file() else web.Response(status=404)

    async def run() -> None:
        nonlocal absent
        async with serving(answer) as server:
            with pytest.raises(OdfError):
                await take(tmp_path / "home", f"{server.base}/cities")
            assert await asyncio.to_thread(held, tmp_path / "home") == []
            absent = True
            await take(tmp_path / "home", f"{server.base}/cities")
            assert await asyncio.to_thread(held, tmp_path / "home") == ["cities"]

    asyncio.run(run())


def test_what_is_wrong_is_said_of_a_file(folder: Path) -> None:
    target = find_layout_target(str(folder), "cities")
    assert target is not None
    (folder / "key-log").mkdir()
    with pytest.raises(MalformedError, match="plain file"):
        target.open("key-log", "key log")
    with target.open("refs/head", "dataset").file as file:
        assert file.read().startswith(b"f16")
