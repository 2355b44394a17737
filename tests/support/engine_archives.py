"""Archives of engines, as tools write them and as attackers would: tars, and images of layers."""

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


@dataclass(frozen=True)
class Entry:
    """One entry of a tar; a folder ends with a slash."""

    path: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    mode: int = 0o644
    headers: Mapping[str, str] | None = None


def folder(path: str) -> Entry:
    return Entry(path, kind=tarfile.DIRTYPE, mode=0o755)


def link(path: str, target: str) -> Entry:
    return Entry(path, kind=tarfile.SYMTYPE, target=target)


def hard_link(path: str, target: str) -> Entry:
    return Entry(path, kind=tarfile.LNKTYPE, target=target)


def program(path: str, content: bytes = b"#!/bin/true\n") -> Entry:
    return Entry(path, content, mode=0o755)


def tar_of(entries: Iterable[Entry]) -> bytes:
    """A tar, with owners and times that must not matter."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.type, info.linkname, info.mode = entry.kind, entry.target, entry.mode
            info.uid, info.uname, info.mtime = 1234, "somebody", 1_600_000_000
            info.size = len(entry.content) if entry.kind == tarfile.REGTYPE else 0
            info.pax_headers = dict(entry.headers or {})
            tar.addfile(info, io.BytesIO(entry.content))
    return made.getvalue()


def config_of(layers: Sequence[bytes], start: Mapping[str, Any], **other: Any) -> bytes:
    """The configuration of an image, for this machine."""
    hashes = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    machine = {"architecture": ARCHITECTURE, "os": "linux"}
    return json.dumps({**machine, "config": start, "rootfs": {"type": "layers", "diff_ids": hashes}, **other}).encode()


def docker_archive(layers: Sequence[bytes], start: Mapping[str, Any], *, tag: str = "x:1.2", **other: Any) -> bytes:
    """What ``docker save`` writes, in its older form; ``other`` goes into the configuration."""
    config = config_of(layers, start, **other)
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"layer-{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": name, "RepoTags": [tag], "Layers": names}]
    files = [Entry("manifest.json", json.dumps(manifest).encode()), Entry(name, config)]
    return tar_of([*files, *(Entry(path, layer) for path, layer in zip(names, layers, strict=True))])


def oci_archive(layers: Sequence[bytes], start: Mapping[str, Any], *, packing: str = "gzip") -> bytes:
    """An OCI layout as a tar, as ``podman save --format oci-archive`` writes it."""
    pack = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress, "": lambda raw: raw}[packing]
    blobs: dict[str, bytes] = {}

    def put(raw: bytes, kind: str) -> dict[str, Any]:
        digits = hashlib.sha256(raw).hexdigest()
        blobs[f"blobs/sha256/{digits}"] = raw
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digits}", "size": len(raw)}

    manifest = {
        "schemaVersion": 2,
        "config": put(config_of(layers, start), "config.v1+json"),
        "layers": [put(pack(layer), "layer.v1.tar") for layer in layers],
    }
    index = {"schemaVersion": 2, "manifests": [put(json.dumps(manifest).encode(), "manifest.v1+json")]}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode(), **blobs}
    return tar_of(Entry(path, raw) for path, raw in files.items())


def write(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path
