"""Archives of engines whose headers, documents and layers say two things.

Source: clauses ADDED-12 to ADDED-17 in ``spec/plug-ins/foreign.md``.
"""

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odf_foreign.archive import take_engine
from odf_protocol.errors import OdfError
from support.engine_archives import Entry, config_of, folder, hard_link, link, program, tar_of, write

START = {"Entrypoint": ["/run"]}
LAYER = tar_of([program("run")])


def header(path: str, kind: bytes, size: int, content: bytes = b"") -> bytes:
    info = tarfile.TarInfo(path)
    info.type, info.size, info.mode = kind, size, 0o755
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def pax(records: bytes, behind: bytes = b"") -> bytes:
    return (
        header("x", tarfile.XHDTYPE, len(records), records) + (behind or header("run", b"0", 3, b"#!x")) + bytes(1024)
    )


def record(name: str, value: str) -> bytes:
    text, length = f" {name}={value}\n".encode(), 0
    while length != (length := len(str(length)) + len(text)):
        pass
    return str(length).encode() + text


def oci(change: Callable[[dict[str, bytes], dict[str, Any]], None] = lambda blobs, index: None, **other: Any) -> bytes:
    """An OCI layout, with whatever is changed in its blobs and its index before both are written."""
    blobs: dict[str, bytes] = {}
    config = other.get("config", config_of([LAYER], START))
    manifest = {"config": put(blobs, config), "layers": [put(blobs, LAYER)], **other.get("manifest", {})}
    index = {"manifests": [put(blobs, json.dumps(manifest).encode())]}
    change(blobs, index)
    files = {"oci-layout": b"{}", "index.json": json.dumps(index).encode(), **blobs}
    return tar_of(Entry(path, raw) for path, raw in files.items())


def put(blobs: dict[str, bytes], raw: bytes, **more: Any) -> dict[str, Any]:
    digits = hashlib.sha256(raw).hexdigest()
    blobs[f"blobs/sha256/{digits}"] = raw
    return {"digest": f"sha256:{digits}", "size": len(raw), **more}


def circle(blobs: dict[str, bytes], index: dict[str, Any]) -> None:
    """Nine indexes inside each other."""
    for _ in range(9):
        kind = "application/vnd.oci.image.index.v1+json"
        index["manifests"] = [put(blobs, json.dumps({"manifests": index["manifests"]}).encode(), mediaType=kind)]


def two_for_this_machine(blobs: dict[str, bytes], index: dict[str, Any]) -> None:
    index["manifests"] *= 2


def other_bytes(blobs: dict[str, bytes], index: dict[str, Any]) -> None:
    blobs.update({path: raw + b" " for path, raw in blobs.items()})


def digest(text: str) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(blobs: dict[str, bytes], index: dict[str, Any]) -> None:
        index["manifests"] = [{"digest": text}]

    return change


def docker(manifest: object, *more: Entry) -> bytes:
    files = [Entry("manifest.json", manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode())]
    return tar_of([*files, Entry("config.json", config_of([LAYER], START)), Entry("layer.tar", LAYER), *more])


IMAGE = {"Config": "config.json", "Layers": ["layer.tar"]}
CUT = tar_of([program("run", b"x" * 5000)])[:2048]

FALSE = {
    "pax-size-below-nothing": pax(record("size", "-1")),
    "pax-size-with-a-sign": pax(record("size", "+3")),
    "pax-size-in-other-digits": pax(record("size", "\u0663")),
    "pax-size-of-exabytes": pax(record("size", str(2**63 + 1))),
    "pax-size-of-a-thousand-digits": pax(record("size", "9" * 1000)),
    "pax-record-longer-than-its-header": pax(b"99 path=run\n"),
    "pax-record-of-no-length": pax(b"0 path=run\n"),
    "pax-record-without-a-sign": pax(b"9 pathrun\n"),
    "pax-record-with-a-length-below-nothing": pax(b"-9 path=r\n"),
    "pax-record-without-its-end": pax(b"12 path=runx"),
    "pax-path-that-climbs": pax(record("path", "../run")),
    "pax-path-with-a-zero": pax(record("path", "a\0b")),
    "pax-path-that-is-absolute": pax(record("path", "/run")),
    "pax-path-of-nothing-for-a-file": pax(record("path", "")),
    "pax-path-for-all": header("x", tarfile.XGLTYPE, 12, b"12 path=abc\n") + LAYER,
    "pax-holes": pax(record("GNU.sparse.realsize", "999999999999")),
    "pax-header-of-gigabytes": header("x", tarfile.XHDTYPE, 2**33),
    "long-name-of-gigabytes": header("x", tarfile.GNUTYPE_LONGNAME, 2**33),
    "long-name-that-climbs": header("x", tarfile.GNUTYPE_LONGNAME, 7, b"../run\0") + LAYER,
    "long-link-that-climbs": header("x", tarfile.GNUTYPE_LONGLINK, 7, b"../run\0") + header("l", b"2", 0) + bytes(1024),
    "sparse-of-gnu": header("run", tarfile.GNUTYPE_SPARSE, 0) + bytes(1024),
    "volume-header": header("run", b"V", 0) + bytes(1024),
    "pipe": header("run", tarfile.FIFOTYPE, 0) + bytes(1024),
    "device": header("run", tarfile.CHRTYPE, 0) + bytes(1024),
    "checksum-that-is-wrong": b"x" + LAYER[1:],
    "cut-in-a-file": CUT,
    "cut-in-a-header": LAYER[:300],
    "link-to-itself-as-a-folder": tar_of([link("a", "a"), Entry("a/run", b"x")]),
    "two-links-in-a-circle": tar_of([link("a", "b"), link("b", "a"), Entry("a/run", b"x")]),
    "hard-link-to-a-folder": tar_of([folder("a/"), hard_link("b", "a")]),
    "hard-link-out-of-the-root": tar_of([program("run"), hard_link("b", "../../etc/passwd")]),
    "hard-link-to-an-absolute-path": tar_of([program("run"), hard_link("b", "/etc/passwd")]),
    "hard-link-to-itself": tar_of([hard_link("b", "b")]),
    "link-to-nowhere": tar_of([link("b", "")]),
    "place-of-the-node": tar_of([program("runtime/run")]),
    "name-longer-than-a-disk-takes": tar_of([Entry("n" * 256, b"x")]),
    "index-without-end": oci(circle),
    "index-of-two-images": oci(two_for_this_machine),
    "index-of-none": oci(lambda blobs, index: index.update(manifests=[])),
    "index-of-another-kind": oci(lambda blobs, index: index.update(manifests={"digest": 1})),
    "blobs-of-other-bytes": oci(other_bytes),
    "blob-that-is-missing": oci(lambda blobs, index: blobs.clear()),
    "digest-that-climbs": oci(digest("sha256:../../index.json")),
    "digest-of-another-algorithm": oci(digest("md5:" + "0" * 32)),
    "digest-in-other-letters": oci(digest("sha256:" + "\u00e9" * 64)),
    "digest-of-nothing": oci(digest("")),
    "more-layers-than-hashes": oci(config=config_of([], START)),
    "layers-of-another-image": oci(config=config_of([LAYER + bytes(512)], START)),
    "configuration-that-is-none": oci(config=b"[]"),
    "configuration-that-is-deep": oci(config=b"[" * 200_000),
    "configuration-of-another-machine": oci(config=config_of([LAYER], START, architecture="riscv64")),
    "configuration-of-another-system": oci(config=config_of([LAYER], START, os="windows")),
    "start-of-nothing": oci(config=config_of([LAYER], {})),
    "start-with-a-zero": oci(config=config_of([LAYER], {"Entrypoint": ["/run\0x"]})),
    "start-of-other-types": oci(config=config_of([LAYER], {"Entrypoint": "/run"})),
    "start-with-an-empty-program": oci(config=config_of([LAYER], {"Entrypoint": [""]})),
    "folder-that-is-no-path": oci(config=config_of([LAYER], {**START, "WorkingDir": "etc"})),
    "environment-without-a-name": oci(config=config_of([LAYER], {**START, "Env": ["=x"]})),
    "environment-of-a-megabyte": oci(config=config_of([LAYER], {**START, "Env": ["A=" + "x" * 1_000_000]})),
    "environment-of-many": oci(config=config_of([LAYER], {**START, "Env": ["A=x"] * 2000})),
    "docker-of-no-image": docker([]),
    "docker-of-two-images": docker([IMAGE, IMAGE]),
    "docker-without-its-configuration": docker([{**IMAGE, "Config": "none"}]),
    "docker-with-a-configuration-outside": docker([{**IMAGE, "Config": "../../../etc/passwd"}]),
    "docker-with-a-layer-outside": docker([{**IMAGE, "Layers": ["/etc/passwd"]}]),
    "docker-with-a-layer-that-is-a-link-outside": docker(
        [{**IMAGE, "Layers": ["l"]}], Entry("l", kind=tarfile.SYMTYPE, target="../../etc/passwd")
    ),
    "docker-with-layers-that-are-links-in-a-circle": docker(
        [{**IMAGE, "Layers": ["l"]}], link("l", "m"), link("m", "l")
    ),
    "docker-with-a-manifest-of-other-types": docker({"Config": 1}),
    "docker-with-a-manifest-of-megabytes": docker(b" " * (4 * 1024 * 1024 + 1)),
    "docker-with-a-thousand-layers": docker([{**IMAGE, "Layers": ["layer.tar"] * 1000}]),
    "docker-with-its-manifest-as-its-layer": docker([{**IMAGE, "Layers": ["manifest.json"]}]),
}


@pytest.mark.parametrize("lie", FALSE)
def test_archive_that_says_two_things_is_rejected_and_leaves_nothing(tmp_path: Path, lie: str) -> None:
    """ADDED-12 to ADDED-17"""
    file = write(tmp_path / "file", FALSE[lie])

    with pytest.raises(OdfError):
        take_engine(file, tmp_path / "root", command=None, port=None)

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_archives_of_these_makers_are_taken_where_nothing_is_false(tmp_path: Path) -> None:
    """ADDED-12: otherwise the attacks above would show nothing."""
    good = {"oci": oci(), "docker": docker([IMAGE]), "pax": pax(record("path", "bin/run")), "tar": LAYER}
    for name, raw in good.items():
        take_engine(write(tmp_path / name, raw), tmp_path / f"root-{name}", command=None, port=None)
        assert (tmp_path / f"root-{name}").is_dir()
