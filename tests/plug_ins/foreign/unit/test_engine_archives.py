"""Clauses ADDED-5 and ADDED-11 to ADDED-17: what archives of engines become, and which are rejected."""

import gzip
import io
import json
import os
import stat
import struct
import tarfile
from pathlib import Path

import pytest
import zstandard

import odf_foreign.archive.root_folder
from odf_foreign.added.content import digest_of_contents
from odf_foreign.added.description import AddedForm, EngineStart
from odf_foreign.archive import TakenEngine, take_engine
from odf_protocol.errors import MalformedError, UnsupportedError
from support.engine_archives import (
    Entry,
    docker_archive,
    folder,
    hard_link,
    link,
    oci_archive,
    program,
    tar_of,
    write,
)

MOUNTED = {"etc", "etc/passwd", "etc/group", "etc/hosts", "etc/nsswitch.conf", "opt", "opt/engine", "opt/engine/in"}
MOUNTED |= {"opt/engine/out"}
START = {"Entrypoint": ["/bin/run"], "Cmd": ["--fast"], "Env": ["A=1", "B=x=y"], "WorkingDir": "/work"}


def take(folder_: Path, raw: bytes) -> TakenEngine:
    return take_engine(write(folder_ / "file", raw), folder_ / "root", command=None, port=None)


def places(root: Path) -> set[str]:
    """What an archive brought: everything below a root but what the node mounts on."""
    return {str(path.relative_to(root)) for path in root.rglob("*")} - MOUNTED


def digest(root: Path) -> str:
    return str(digest_of_contents(root, EngineStart(command=("/engine",)), None))


def test_program_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    for raw in (b"\x7fELF and more", b"#!/usr/bin/python3\n"):
        taken = take(tmp_path, raw)
        assert (taken.form, taken.start.command, taken.start.port) == (
            AddedForm.PROGRAM,
            ("/opt/engine/program",),
            2884,
        )
        assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_root_folder_is_unpacked_however_it_is_packed(tmp_path: Path, pack) -> None:
    raw = tar_of([folder("usr/"), program("usr/run", b"1"), Entry("./data", b"23"), link("engine", "usr/run")])
    taken = take(tmp_path, pack(raw))
    assert (taken.form, taken.start.command) == (AddedForm.ROOT, ("/engine",))
    root = tmp_path / "root"
    assert places(root) == {"usr", "usr/run", "data", "engine"}
    assert (root / "usr/run").read_bytes() == b"1"
    assert stat.S_IMODE((root / "usr/run").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "data").stat().st_mode) == 0o600
    assert (root / "engine").readlink() == Path("usr/run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "root"]


@pytest.mark.parametrize("packing", ["gzip", "zstd", ""])
def test_image_says_how_it_is_started(tmp_path: Path, packing: str) -> None:
    taken = take(tmp_path, oci_archive([tar_of([program("bin/run")])], START, packing=packing))
    assert taken.start == EngineStart(command=("/bin/run", "--fast"), environment=("A=1", "B=x=y"), folder="/work")
    assert places(tmp_path / "root") == {"bin", "bin/run"}


def test_saved_image_is_called_by_its_tag_or_its_label(tmp_path: Path) -> None:
    layers = [tar_of([program("run")])]
    assert take(tmp_path, docker_archive(layers, START)).version == "1.2"
    (tmp_path / "other").mkdir()
    labelled = START | {"Labels": {"org.opencontainers.image.version": "3.4"}}
    assert take(tmp_path / "other", docker_archive(layers, labelled)).version == "3.4"


def test_layers_hide_what_is_below_and_not_what_they_bring(tmp_path: Path) -> None:
    below = tar_of(
        [Entry("a/1", b"1"), Entry("a/2", b"2"), Entry("b/1", b"1"), Entry("b/sub/2", b"2"), Entry("c", b"c")]
    )
    above = tar_of([
        Entry("b/new", b"n"), Entry("b/.wh..wh..opq"), Entry("b/later", b"l"), Entry("a/.wh.1"), Entry("c", b"C"),
        Entry("d", b"d"), Entry(".wh.d"),
    ])  # fmt: skip
    take(tmp_path, docker_archive([below, above], START))
    root = tmp_path / "root"
    assert places(root) == {"a", "a/2", "b", "b/new", "b/later", "c", "d"}
    assert (root / "c").read_bytes() == b"C"


def test_names_of_marks_are_names_where_there_are_no_layers(tmp_path: Path) -> None:
    take(tmp_path, tar_of([Entry("a"), Entry(".wh.a")]))
    assert places(tmp_path / "root") == {"a", ".wh.a"}


def test_entries_below_a_linked_folder_go_where_it_leads(tmp_path: Path) -> None:
    below = tar_of([folder("usr/lib/"), link("lib", "/usr/lib"), link("lib64", "usr/../usr/./lib")])
    above = tar_of([Entry("lib/x", b"x"), Entry("lib64/y", b"y"), hard_link("lib/z", "lib/x")])
    take(tmp_path, docker_archive([below, above], START))
    root = tmp_path / "root"
    assert places(root) == {"usr", "usr/lib", "lib", "lib64", "usr/lib/x", "usr/lib/y", "usr/lib/z"}
    assert (root / "usr/lib/z").samefile(root / "usr/lib/x")


def test_file_in_place_of_a_folder_takes_all_of_it_away(tmp_path: Path) -> None:
    take(tmp_path, docker_archive([tar_of([Entry("a/b/c")]), tar_of([Entry("a", b"file")])], START))
    assert places(tmp_path / "root") == {"a"}


def test_what_every_sandbox_has_is_left_out(tmp_path: Path) -> None:
    take(tmp_path, tar_of([Entry("dev/console"), Entry("proc/1/mem"), folder("sys/"), Entry("tmp/x"), Entry("a/tmp")]))
    assert places(tmp_path / "root") == {"a", "a/tmp"}


def test_privileges_are_dropped_and_told(tmp_path: Path) -> None:
    taken = take(tmp_path, tar_of([Entry("su", b"x", mode=0o4755), Entry("wall", b"x", mode=0o2711)]))
    assert stat.S_IMODE((tmp_path / "root/su").stat().st_mode) == 0o700
    assert taken.notes == ("2 files would run as another user (setuid, setgid); here they do not",)


def test_owners_times_layers_and_packing_change_no_digest(tmp_path: Path) -> None:
    entries = [folder("bin/"), program("bin/run"), Entry("data", b"1"), link("x", "data")]
    archives = [
        tar_of(entries),
        tar_of(reversed(entries)),
        docker_archive([tar_of(entries[:2]), tar_of(entries)], START),
    ]
    digests = set()
    for number, raw in enumerate([*archives, oci_archive([tar_of(entries)], START)]):
        place = tmp_path / str(number)
        place.mkdir()
        take(place, raw)
        os.utime(place / "root/data", (number, number))
        digests.add(digest(place / "root"))
    assert len(digests) == 1


@pytest.mark.parametrize(
    "entries",
    [
        [program("bin/run"), Entry("data", b"2"), link("x", "data")],
        [Entry("bin/run", b"#!/bin/true\n"), Entry("data", b"1"), link("x", "data")],
        [program("bin/run"), Entry("data", b"1"), link("x", "bin")],
        [program("bin/run"), Entry("data", b"1"), Entry("x", b"1")],
        [program("bin/run"), Entry("data", b"1"), link("x", "data"), folder("empty/")],
    ],
    ids=["contents", "run-bit", "target", "link-that-is-a-file", "folder"],
)
def test_anything_else_changes_the_digest(tmp_path: Path, entries: list[Entry]) -> None:
    for name, each in (("a", [program("bin/run"), Entry("data", b"1"), link("x", "data")]), ("b", entries)):
        (tmp_path / name).mkdir()
        take(tmp_path / name, tar_of(each))
    assert digest(tmp_path / "a/root") != digest(tmp_path / "b/root")


def header_bomb() -> bytes:
    """A header that says that the next one has a path of 4 GiB."""
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 4 * 1024**3
    return info.tobuf(tarfile.GNU_FORMAT)


def negative_size() -> bytes:
    info = tarfile.TarInfo("x")
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[124:136] = b"\xff" * 12  # minus one, in base 256
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    return bytes(raw) + bytes(1024)


BROKEN = {
    "path-with-dots": (tar_of([Entry("a/../../../etc/cron.d/x")]), "one with '..'"),
    "absolute-path": (tar_of([Entry("/etc/cron.d/x")]), "an absolute one"),
    "link-that-climbs": (tar_of([link("a/b", "../../etc/passwd")]), "a link that stays inside the root"),
    "absolute-link-that-climbs": (tar_of([link("a", "/../etc/passwd")]), "a link that stays inside the root"),
    "link-to-nothing": (tar_of([link("a", "")]), "a link to a path"),
    "circle-of-links": (tar_of([link("a", "b"), link("b", "a"), Entry("a/x")]), "at most 40 links"),
    "hard-link-out": (tar_of([hard_link("x", "../../etc/shadow")]), "one with '..'"),
    "absolute-hard-link": (tar_of([hard_link("x", "/etc/shadow")]), "an absolute one"),
    "hard-link-to-nothing": (tar_of([hard_link("x", "y")]), "a hard link to a file of it"),
    "hard-link-to-folder": (tar_of([folder("y/"), hard_link("x", "y")]), "a hard link to a file of it"),
    "file-below-a-file": (tar_of([Entry("a"), Entry("a/b")]), "a folder, found a file"),
    "file-at-the-top": (tar_of([Entry("./")]), "a folder"),
    "too-deep": (tar_of([Entry("/".join("d" * 70))]), "folders inside each other"),
    "long-name": (tar_of([Entry("n" * 300)]), "names of at most 255 bytes"),
    "long-path": (tar_of([Entry("/".join(["n" * 100] * 50))]), "at most 4096 bytes"),
    "own-place": (tar_of([Entry("runtime/python/bin/python3")]), "the node's own"),
    "link-at-a-mount-point": (tar_of([link("opt", "usr")]), "a folder"),
    "cut-in-a-file": (tar_of([Entry("a", bytes(5000))])[:2000], "more bytes of a file"),
    "cut-in-a-header": (tar_of([Entry("a", bytes(5000))])[:100], "a header"),
    "no-archive": (b"once upon a time " * 100, "a header"),
    "nothing": (b"", "an entry"),
    "header-bomb": (header_bomb(), "headers of at most"),
    "negative-size": (negative_size(), "a size"),
    "size-in-words": (tar_of([Entry("a", b"1", headers={"size": "many"})]), "a size"),
    "broken-gzip": (gzip.compress(tar_of([Entry("a", bytes(9999))]))[:-20], "bytes that can be unpacked"),
    "broken-zstd": (zstandard.ZstdCompressor().compress(tar_of([Entry("a", bytes(9999))]))[:-20], "malformed"),
    "manifest-that-is-none": (tar_of([Entry("manifest.json", b"{")]), "what describes an image"),
    "manifest-that-is-deep": (tar_of([Entry("manifest.json", b"[" * 100_000)]), "what describes an image"),
    "two-images": (tar_of([Entry("manifest.json", b'[{"Config": "c", "Layers": []}, {"Config": "c", "Layers": []}]')]),
        "one image"),
    "no-configuration": (
        tar_of([Entry("manifest.json", json.dumps([{"Config": "../../c", "Layers": []}]).encode())]),
        "a file of the archive",
    ),
    "no-command": (docker_archive([tar_of([Entry("a")])], {}), "a program to start"),
    "environment-that-is-none": (docker_archive([tar_of([Entry("a")])], START | {"Env": ["A"]}), "NAME=value"),
    "mark-that-hides-nothing": (docker_archive([tar_of([Entry(".wh.")])], START), "a name that is hidden"),
    "mark-that-hides-its-folder": (docker_archive([tar_of([Entry("a/.wh...")])], START), "a name that is hidden"),
    "path-out-in-a-layer": (docker_archive([tar_of([Entry("../x")])], START), "one with '..'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_archive_that_is_none_or_leaves_its_root_is_rejected(tmp_path: Path, name: str) -> None:
    raw, stated = BROKEN[name]
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(MalformedError) as caught:
        take(inside, raw)
    assert stated in str(caught.value)
    assert [path.name for path in inside.iterdir()] == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@pytest.mark.parametrize(
    ("entry", "stated"),
    [
        (Entry("sda", kind=tarfile.BLKTYPE), "sda, a device"),
        (Entry("dev/null", kind=tarfile.CHRTYPE), "dev/null, a device"),
        (Entry("pipe", kind=tarfile.FIFOTYPE), "pipe, a pipe"),
        (Entry("holes", headers={"GNU.sparse.major": "1"}), "a file with holes"),
        (Entry("strange", kind=b"Z"), "strange, of type"),
    ],
    ids=["block-device", "character-device", "pipe", "sparse", "unknown"],
)
def test_what_no_root_folder_needs_is_rejected_by_name(tmp_path: Path, entry: Entry, stated: str) -> None:
    with pytest.raises(UnsupportedError, match=stated):
        take(tmp_path, tar_of([program("engine"), entry]))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_image_for_another_machine_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="for linux on s390x"):
        take(tmp_path, docker_archive([tar_of([Entry("a")])], START, architecture="s390x"))


def test_layer_of_another_image_is_rejected(tmp_path: Path) -> None:
    good, other = tar_of([program("run", b"good")]), tar_of([program("run", b"evil")])
    raw = docker_archive([good], START).replace(good, other)
    with pytest.raises(MalformedError, match="layer 0: expected the hash sha256"):
        take(tmp_path, raw)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_document_of_another_image_is_rejected(tmp_path: Path) -> None:
    raw = oci_archive([tar_of([program("run")])], START).replace(b"--fast", b"--slow")
    with pytest.raises(MalformedError, match=r"expected the hash sha256:[0-9a-f]{64}, found sha256"):
        take(tmp_path, raw)


def test_bounds_hold_for_what_is_unpacked_and_not_for_what_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odf_foreign.archive.root_folder, "_MAX_UNPACKED_BYTES", 1_000_000)
    bomb = tar_of([Entry("a", bytes(2_000_000))])
    for raw in (gzip.compress(bomb), oci_archive([bomb], START)):
        assert len(raw) < 20_000
        with pytest.raises(MalformedError, match="at most 1000000 bytes unpacked"):
            take(tmp_path, raw)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_many_files_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odf_foreign.archive.root_folder, "_MAX_ENTRIES", 20)
    layers = [tar_of([Entry(f"{layer}-{number}") for number in range(11)]) for layer in range(2)]
    for raw in (tar_of([Entry(str(number)) for number in range(21)]), docker_archive(layers, START)):
        with pytest.raises(MalformedError, match="at most 20 entries"):
            take(tmp_path, raw)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_many_names_at_the_top_are_rejected(tmp_path: Path) -> None:
    """Each would be an argument of the command that builds the sandbox."""
    with pytest.raises(MalformedError, match="at most 100 names at the top"):
        take(tmp_path, tar_of([Entry(str(number)) for number in range(200)]))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_names_that_are_no_text_are_rejected(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as tar:
        tar.addfile(tarfile.TarInfo("caf\xe9"))
    with pytest.raises(MalformedError, match="malformed tar"):
        take(tmp_path, made.getvalue())


def test_long_names_of_gnu_are_read(tmp_path: Path) -> None:
    made = io.BytesIO()
    path = "/".join(["n" * 60] * 4)
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo(path))
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, path
        tar.addfile(info)
    take(tmp_path, made.getvalue())
    assert (tmp_path / "root/link").readlink() == Path(path)


def test_huge_file_that_the_archive_only_claims_is_not_made(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    info.size = 2**40
    with pytest.raises(MalformedError, match="more bytes of a file"):
        take(tmp_path, info.tobuf(tarfile.GNU_FORMAT) + struct.pack("512x"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
