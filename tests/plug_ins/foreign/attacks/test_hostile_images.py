"""Archives of engines and images that lie about places, or cost far more than they weigh.

Source: clauses ADDED-12, ADDED-14 and ADDED-17 in ``spec/plug-ins/foreign.md``, ING-40 in
``spec/plug-ins/sources.md``.
"""

import gzip
import io
import tarfile
import tracemalloc
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import odf_foreign.archive.root_folder
import odf_foreign.archive.root_tree
from odf_foreign import image_folder
from odf_foreign.archive import TakenEngine, take_engine
from odf_foreign.image_folder import ImageFolder
from odf_foreign.images import AddedImage
from odf_node.home_folder import HomeFolder
from odf_protocol.errors import MalformedError, NotFoundError
from odf_protocol.timestamp import Timestamp
from support.engine_archives import Entry, docker_archive, folder, hard_link, link, oci_archive, program, tar_of, write

START = {"Entrypoint": ["/run"]}
NOW = Timestamp.parse("2024-05-01T00:00:00Z")


def take(place: Path, raw: bytes) -> TakenEngine:
    return take_engine(write(place / "file", raw), place / "root", command=None, port=None)


def refused(place: Path, raw: bytes, stated: str) -> None:
    with pytest.raises(MalformedError, match=stated):
        take(place, raw)
    assert [path.name for path in place.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "layers",
    [
        [[link("a/b/c", "../../x"), hard_link("up", "a/b/c")]],
        [[link("a/b/c", "../../x")], [hard_link("up", "a/b/c")]],
        [[folder("top/"), link("a", "/"), link("a/b", "../x")]],
        [[link("a", "/")], [link("a/up", "../x")]],
    ],
    ids=["hard-link-to-it", "hard-link-in-the-next-layer", "behind-a-link-to-the-top", "behind-a-link-of-below"],
)
def test_link_that_climbs_from_where_it_comes_to_stand_is_rejected(tmp_path: Path, layers: list[list[Entry]]) -> None:
    refused(tmp_path, docker_archive([tar_of(each) for each in layers], START), "a link that stays inside the root")


def test_link_whose_place_is_deeper_than_its_path_says_is_taken(tmp_path: Path) -> None:
    """Debian's ``lib`` is a link to ``usr/lib``: what packages put below it stands one folder deeper."""
    take(tmp_path, tar_of([link("lib", "usr/lib"), folder("usr/lib/"), Entry("usr/x", b"x"), link("lib/y", "../x")]))
    assert (tmp_path / "root/usr/lib/y").read_bytes() == b"x"


def test_place_that_only_links_make_too_long_is_rejected(tmp_path: Path) -> None:
    long = "/".join("n" * 250 for _ in range(15))
    refused(tmp_path, tar_of([folder(f"{long}/"), link("x", long), folder(f"x/{long}/")]), "at most 4096 bytes")


def long_named(count: int, characters: int) -> bytes:
    """A packed tar of files with names of a megabyte, each of which has another first letter."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as packed:
        for number in range(count):
            name = str(number).encode() + b"n" * characters
            for kind, size, raw in ((tarfile.GNUTYPE_LONGLINK, len(name), name), (tarfile.SYMTYPE, 0, b"")):
                info = tarfile.TarInfo(f"x{number}")
                info.type, info.size = kind, size
                packed.write(info.tobuf(tarfile.GNU_FORMAT) + raw + bytes(-len(raw) % 512))
        packed.write(bytes(1024))
    return made.getvalue()


@pytest.mark.parametrize(("count", "characters"), [(100, 1_000_000), (30_000, 4000)], ids=["long", "many"])
def test_names_of_an_archive_are_kept_only_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, characters: int
) -> None:
    monkeypatch.setattr(odf_foreign.archive.root_folder, "_MAX_NAMED_BYTES", 10_000_000)
    raw = long_named(count, characters)
    assert len(raw) < 2_000_000
    tracemalloc.start()
    try:
        refused(tmp_path, raw, "at most")
        _, max_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max_bytes < 40_000_000


def test_one_layer_many_times_over_is_unpacked_only_up_to_the_bound_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odf_foreign.archive.root_folder, "_MAX_UNPACKED_BYTES", 3_000_000)
    layer = tar_of([Entry("a", bytes(1_000_000))])
    refused(tmp_path, oci_archive([layer] * 4, START), "at most 3000000 bytes unpacked")
    take(tmp_path, oci_archive([layer] * 2, START))


def test_links_that_lead_a_long_way_are_followed_only_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty links of a thousand names each, before each of half a million entries, would take hours."""
    monkeypatch.setattr(odf_foreign.archive.root_tree, "_MAX_STEPS", 100_000)
    way = "w/../" * 500
    links = [link(f"l{number}", f"{way}l{number + 1}") for number in range(30)]
    entries = [folder("w/"), *links, folder("l30/"), *(Entry(f"l0/{number}") for number in range(20))]
    refused(tmp_path, tar_of(entries), "at most 100000 names")
    take(tmp_path, tar_of(entries[:35]))


def test_folders_that_no_entry_names_are_made_only_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty for each of half a million entries would be memory for gigabytes, and a full table of files."""
    monkeypatch.setattr(odf_foreign.archive.root_tree, "_MAX_MADE", 1000)
    deep = "/".join("d" * 60)
    refused(tmp_path, tar_of([Entry(f"x/{number}/{deep}") for number in range(20)]), "at most 1000 folders")
    take(tmp_path, tar_of([Entry(f"x/{number}/{deep}") for number in range(10)]))


def test_links_to_one_file_are_no_more_than_every_disk_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odf_foreign.archive.root_folder, "_MAX_PLACES", 10)
    links = [hard_link(f"d/{number}", "a") for number in range(11)]
    refused(tmp_path, tar_of([Entry("a"), *links]), "at most 10 hard links")
    take(tmp_path, tar_of([Entry("a"), *links[:9]]))


def added(place: Path, file: Path) -> AddedImage:
    images = ImageFolder(HomeFolder(place / "home"))
    images.add("x", file, has_network=False, now=NOW)
    found = images.find("x")
    assert isinstance(found, AddedImage)
    return found


def test_image_that_is_removed_while_it_is_looked_at_is_not_damaged_but_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(tmp_path, write(tmp_path / "file", docker_archive([tar_of([program("run")])], START)))
    images, really_open = ImageFolder(HomeFolder(tmp_path / "home")), Path.open

    def remove_first(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "image.json":
            monkeypatch.undo()
            ImageFolder(HomeFolder(tmp_path / "home")).remove("x")
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", remove_first)
    assert images.list() == ()
    with pytest.raises(NotFoundError, match="there is no image 'x'"):
        images.remove("x")


def test_image_that_another_command_removes_first_is_told_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(tmp_path, write(tmp_path / "file", docker_archive([tar_of([program("run")])], START)))
    images, held_alone = ImageFolder(HomeFolder(tmp_path / "home")), image_folder.held_alone

    def wait_for_another(folder: Path, lock: str) -> AbstractContextManager[None]:
        monkeypatch.undo()
        ImageFolder(HomeFolder(tmp_path / "home")).remove("x")
        return held_alone(folder, lock)

    monkeypatch.setattr(image_folder, "held_alone", wait_for_another)
    with pytest.raises(NotFoundError, match="there is no image 'x'"):
        images.remove("x")


def test_environment_is_taken_only_where_it_can_be_kept_and_given(tmp_path: Path) -> None:
    start = START | {"Env": [f"A{number}={'x' * 2000}" for number in range(900)]}
    file = write(tmp_path / "file", docker_archive([tar_of([program("run")])], start))
    with pytest.raises(MalformedError, match="131072 characters in all words"):
        added(tmp_path, file)
    assert [path.name for path in (tmp_path / "home/images").iterdir()] == ["images.lock"]

    start = START | {"Env": ["A=" + "\x01" * 2000] * 60}
    assert len(added(tmp_path, write(file, docker_archive([tar_of([program("run")])], start))).start.environment) == 60


def layout_of(place: Path, raw: bytes) -> Path:
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        tar.extractall(place, filter="data")
    return place


def test_layout_with_a_file_of_petabytes_fills_no_disk(tmp_path: Path) -> None:
    layout = layout_of(tmp_path / "layout", oci_archive([tar_of([program("run")])], START))
    assert added(tmp_path / "good", layout).start.entry_point == ("/run",)
    with (layout / "blobs/more").open("wb") as file:
        file.truncate(2**43)
    with pytest.raises(MalformedError, match="files of at most 8589934592 bytes"):
        added(tmp_path, layout)
    assert [path.name for path in (tmp_path / "home/images").iterdir()] == ["images.lock"]
