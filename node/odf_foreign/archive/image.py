"""Which layers an image has, and how its program is started: as ``docker save`` and ``podman save`` write it down.

Everything that is believed hangs together by hashes: a manifest names its configuration, which names each layer by the
hash of what it unpacks to. So an archive whose parts were exchanged is rejected.

Source: clause ADDED-13 in ``spec/plug-ins/foreign.md``; OCI image-spec 1.1; Docker image spec 1.2.
"""

import hashlib
import platform
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from odf_foreign.archive.tar_entries import EntryKind, Section, TarEntry
from odf_protocol.errors import MalformedError, UnsupportedError

_MAX_DOCUMENT_BYTES: Final = 4 * 1024 * 1024  # as registries allow for a manifest
_MAX_LAYERS: Final = 256  # guess: Docker's own storage ends at 128
_MAX_INDEXES: Final = 8  # guess: inside each other; one is usual
_SHA256: Final = "sha256:"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # of this machine, as images call them: Go's GOARCH
_VERSION_LABEL: Final = "org.opencontainers.image.version"
_VERSION_CHARACTERS: Final = 60

_Document = TypeVar("_Document")


class _DockerImage(msgspec.Struct, rename="pascal"):
    config: str
    layers: tuple[str, ...]
    repo_tags: tuple[str, ...] | None = None


class _Platform(msgspec.Struct):
    architecture: str = ""
    os: str = ""


class _Descriptor(msgspec.Struct, rename="camel"):
    digest: str
    media_type: str = ""
    platform: _Platform | None = None


class _Index(msgspec.Struct):
    manifests: tuple[_Descriptor, ...]


class _Manifest(msgspec.Struct):
    config: _Descriptor
    layers: tuple[_Descriptor, ...]


class _Start(msgspec.Struct, rename="pascal"):
    entrypoint: tuple[str, ...] | None = None
    cmd: tuple[str, ...] | None = None
    env: tuple[str, ...] | None = None
    working_dir: str = ""
    labels: dict[str, str] | None = None


class _RootFolder(msgspec.Struct):
    diff_ids: tuple[str, ...]


class _Config(msgspec.Struct):
    rootfs: _RootFolder
    config: _Start | None = None
    architecture: str = ""
    os: str = ""


@dataclass(frozen=True, slots=True)
class ImageLayer:
    """Where a layer stands in the archive, and the SHA-256 of what it unpacks to, in hexadecimal digits."""

    position: int
    size_bytes: int
    unpacked_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image: layers from below, and what it says of itself.

    Attributes:
        layers: From below.
        digests: By which it can be named, ``sha256:`` and hexadecimal digits: of its manifest and the indexes that lead
            to it, as far as the archive has them, and of its configuration.
        entry_point: What is always run.
        arguments: Behind it, where nobody says others.
        environment: ``NAME=value``, untrusted.
        folder: Where it starts, untrusted.
        version: What it calls itself, for people.
    """

    layers: tuple[ImageLayer, ...]
    digests: tuple[str, ...]
    entry_point: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[str, ...]
    folder: str
    version: str

    @property
    def command(self) -> tuple[str, ...]:
        """What it runs by itself."""
        return (*self.entry_point, *self.arguments)


def find_image(file: BinaryIO, members: Mapping[str, TarEntry]) -> Image | None:
    """Return the one image of an archive, None where the archive is none of images.

    Args:
        file: The archive, not packed.
        members: What is in it, by path.

    Raises:
        MalformedError: It has several, or none for this machine, or its parts do not belong together.
        UnsupportedError: It is for another machine.
    """
    archive = _Archive(file, members)
    if "manifest.json" in members:
        (image,) = _exactly_one(archive.decode("manifest.json", tuple[_DockerImage, ...]), "images")
        raw = archive.read(image.config)
        config = _decode(raw, image.config, _Config)
        digests = (f"{_SHA256}{hashlib.sha256(raw).hexdigest()}",)
        tags = [tag.rpartition(":")[2] for tag in image.repo_tags or ()]
        return _image_of(config, [archive.get(path) for path in image.layers], tags, digests)
    if "index.json" in members and "oci-layout" in members:
        way = _find_manifest(archive)
        manifest = archive.decode_blob(way[-1], _Manifest)
        config = archive.decode_blob(manifest.config.digest, _Config)
        layers = [archive.get(_path_of(each.digest)) for each in manifest.layers]
        return _image_of(config, layers, (), (*way, manifest.config.digest))
    return None


class _Archive:
    def __init__(self, file: BinaryIO, members: Mapping[str, TarEntry]) -> None:
        self._file = file
        self._members = members

    def get(self, path: str) -> TarEntry:
        """Return a file; Docker links a layer that another image in the archive has too."""
        found = self._members.get(posixpath.normpath(path))
        if found is not None and found.kind is EntryKind.LINK:
            found = self._members.get(posixpath.normpath(posixpath.join(posixpath.dirname(path), found.target)))
        if found is None or found.kind is not EntryKind.FILE:
            raise _wrong(path, "a file of the archive", "none")
        return found

    def read(self, path: str) -> bytes:
        found = self.get(path)
        if found.size_bytes > _MAX_DOCUMENT_BYTES:
            raise _wrong(path, f"at most {_MAX_DOCUMENT_BYTES} bytes", found.size_bytes)
        return Section(self._file, found.position, found.size_bytes).read()

    def decode(self, path: str, kind: type[_Document]) -> _Document:
        return _decode(self.read(path), path, kind)

    def decode_blob(self, digest: str, kind: type[_Document]) -> _Document:
        """Decode a document that is named by its hash."""
        path = _path_of(digest)
        raw = self.read(path)
        if (found := hashlib.sha256(raw).hexdigest()) != digest.removeprefix(_SHA256):
            raise _wrong(path, f"the hash {digest}", f"{_SHA256}{found}")
        return _decode(raw, path, kind)


def _find_manifest(archive: _Archive) -> tuple[str, ...]:
    """Return the digest of the one manifest that is for this machine, behind those of the indexes that lead to it."""
    index = archive.decode("index.json", _Index)
    way: list[str] = []
    for _ in range(_MAX_INDEXES):
        (found,) = _exactly_one([each for each in index.manifests if _fits(each.platform)], "images for this machine")
        way.append(str(found.digest))
        if "index" not in found.media_type and "manifest.list" not in found.media_type:
            return tuple(way)
        index = archive.decode_blob(found.digest, _Index)
    raise _wrong("index.json", f"at most {_MAX_INDEXES} indexes inside each other", "more")


def _fits(wanted: _Platform | None) -> bool:
    return wanted is None or (wanted.os, wanted.architecture) == ("linux", _architecture())


def _architecture() -> str:
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def _image_of(config: _Config, layers: Sequence[TarEntry], tags: Sequence[str], digests: tuple[str, ...]) -> Image:
    for found, expected in ((config.os, "linux"), (config.architecture, _architecture())):
        if found not in {"", expected}:
            raise UnsupportedError("image", found=f"for {config.os} on {config.architecture}", supported=expected)
    hashes = config.rootfs.diff_ids
    if len(layers) != len(hashes) or len(layers) > _MAX_LAYERS:
        raise _wrong("layers", f"{len(hashes)}, as the configuration says, and at most {_MAX_LAYERS}", len(layers))
    start = config.config or _Start()
    version = (start.labels or {}).get(_VERSION_LABEL) or next(iter(tags), "")
    return Image(
        layers=tuple(
            ImageLayer(each.position, each.size_bytes, _hex_of(digest))
            for each, digest in zip(layers, hashes, strict=True)
        ),
        digests=digests,
        entry_point=start.entrypoint or (),
        arguments=start.cmd or (),
        environment=start.env or (),
        folder=start.working_dir or "/",
        version=version[:_VERSION_CHARACTERS] if version.isprintable() else "",
    )


def _exactly_one(found: Sequence[Any], what: str) -> Sequence[Any]:
    if len(found) != 1:
        raise MalformedError("archive", expected="one image", found=f"{len(found)} {what}")
    return found


def _path_of(digest: str) -> str:
    return f"blobs/sha256/{_hex_of(digest)}"


def _hex_of(digest: str) -> str:
    digits = digest.removeprefix(_SHA256)
    if not digest.startswith(_SHA256) or len(digits) != hashlib.sha256().digest_size * 2 or not digits.isalnum():
        raise _wrong("digest", "sha256 and 64 digits", digest)
    return digits


def _decode(raw: bytes, path: str, kind: type[_Document]) -> _Document:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _wrong(path, "what describes an image", error) from error


def _wrong(where: str, expected: object, found: object) -> MalformedError:
    return MalformedError("archive", where=where, expected=expected, found=found)
