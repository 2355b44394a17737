"""From a file that somebody sent to an engine that can be run: what it is, how it starts, its root folder on disk.

Source: clauses ADDED-11 to ADDED-17 in ``spec/extensions/added-engines.md``.
"""

import errno
import posixpath
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from odf_engines.added.description import CONTRACT_PORT, EngineStart, Form
from odf_engines.added.places import MADE_ANEW, MOUNT_POINTS, OWN_PLACES, PROGRAM
from odf_engines.archive.byte_streams import BoundedStream, Section, magic_of, unpacked
from odf_engines.archive.image import Image, ImageLayer, find_image
from odf_engines.archive.layers import put_layer
from odf_engines.archive.root_tree import FileNode, FolderNode, LinkNode, RootTree
from odf_engines.archive.tar_entries import TarEntry, iter_entries
from odf_protocol.errors import MalformedError

__all__ = ["MOST_FILE_BYTES", "TakenEngine", "take_engine"]

MOST_FILE_BYTES: Final = 8 * 1024**3  # guess: images of Spark and Flink have 1 to 2 GiB
_MOST_UNPACKED_BYTES: Final = 16 * 1024**3  # guess: of one layer, and of all files of a root folder
_MOST_ENTRIES: Final = 500_000  # guess: of all layers; an image with Python and Java has 60,000
_MOST_AT_TOP: Final = 100  # guess: Linux has twenty; each is an argument of what builds the sandbox
_PROGRAMS: Final = (b"\x7fELF", b"#!")
_ROOT_COMMAND: Final = "/engine"
_READ_BYTES: Final = 1024 * 1024
_NOWHERE: Final = -1  # of no layer: files that are empty


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenEngine:
    """What a file turned out to be; ``notes`` say what was changed of it."""

    form: Form
    start: EngineStart
    version: str = ""
    notes: tuple[str, ...] = ()


def take_engine(file: Path, root: Path, *, command: tuple[str, ...] | None, port: int | None) -> TakenEngine:
    """Find out what a file is, and unpack it if it is an archive.

    Args:
        file: Untrusted; nobody else writes to it.
        root: Where its root folder shall be; does not exist yet. A program has none.
        command: How it is started; None: as it says itself.
        port: Where it answers; None: where engines usually do.

    Raises:
        MalformedError, UnsupportedError: It is no engine, or an archive that nobody should unpack.
        OSError: It cannot be written.
    """
    if (size_bytes := file.stat().st_size) > MOST_FILE_BYTES:
        raise MalformedError("engine", expected=f"a file of at most {MOST_FILE_BYTES} bytes", found=size_bytes)
    if magic_of(file).startswith(_PROGRAMS):
        start = EngineStart(command=command or (PROGRAM,), port=port or CONTRACT_PORT)
        start.check()
        return TakenEngine(form=Form.PROGRAM, start=start)
    with _as_plain_tar(file, root) as tar:
        members = _list_members(tar)
        image = find_image(tar, members)
        start = _start_of(image, command, port)
        start.check()
        layers = _Layers(tar, image)
        tree = RootTree()
        for number in range(layers.count):
            put_layer(tree, layers.list_entries(number), number, has_marks=image is not None)
        _make_room(tree)
        _write(tree, layers, root)
    notes: tuple[str, ...] = ()
    if layers.with_privileges:
        notes = (f"{layers.with_privileges} files would run as another user (setuid, setgid); here they do not",)
    return TakenEngine(form=Form.ROOT, start=start, version=image.version if image else "", notes=notes)


def _start_of(image: Image | None, command: tuple[str, ...] | None, port: int | None) -> EngineStart:
    if image is None:
        return EngineStart(command=command or (_ROOT_COMMAND,), port=port or CONTRACT_PORT)
    return EngineStart(
        command=command or image.command,
        environment=image.environment,
        folder=image.folder,
        port=port or CONTRACT_PORT,
    )


@contextmanager
def _as_plain_tar(file: Path, root: Path) -> Iterator[BinaryIO]:
    """Open an archive, unpacked beside where its root will be if it is packed as a whole."""
    with file.open("rb") as packed:
        stream = unpacked(packed, magic := magic_of(file))
        if stream is packed:
            yield packed
            return
        plain = root.with_name(f"{root.name}.tar")
        bounded = BoundedStream(
            stream, _MOST_UNPACKED_BYTES, f"archive packed by {'gzip' if magic[0] == 0x1F else 'zstd'}"
        )
        try:
            with plain.open("xb") as target:
                while part := bounded.read(_READ_BYTES):
                    target.write(part)
            with plain.open("rb") as found:
                yield found
        finally:
            plain.unlink(missing_ok=True)


def _list_members(tar: BinaryIO) -> dict[str, TarEntry]:
    """List what is in a tar by path; of entries with one path the last counts."""
    tar.seek(0)
    found = {}
    for number, (entry, _) in enumerate(iter_entries(BoundedStream(tar, _MOST_UNPACKED_BYTES, "archive"))):
        if number >= _MOST_ENTRIES:
            raise MalformedError("archive of an engine", expected=f"at most {_MOST_ENTRIES} entries", found="more")
        found[posixpath.normpath(entry.path)] = entry
    return found


class _Layers:
    """The layers of an archive, from below; a tar that is no image is one layer itself."""

    def __init__(self, tar: BinaryIO, image: Image | None) -> None:
        self._tar = tar
        self._layers: Sequence[ImageLayer] | None = None if image is None else image.layers
        self._entries_left = _MOST_ENTRIES
        self.with_privileges = 0
        self.count = 1 if self._layers is None else len(self._layers)

    def list_entries(self, number: int) -> list[TarEntry]:
        """List the entries of a layer, and check that it is the one that the image names."""
        stream, entries = self._open(number), []
        for entry, _ in iter_entries(stream):
            entries.append(entry)
            self.with_privileges += entry.has_privileges
            if len(entries) > self._entries_left:
                raise MalformedError("archive of an engine", expected=f"at most {_MOST_ENTRIES} entries", found="more")
        self._entries_left -= len(entries)
        digest = stream.finish()
        if self._layers is not None and digest != self._layers[number].unpacked_hash:
            expected = f"the hash sha256:{self._layers[number].unpacked_hash}"
            raise MalformedError("archive of an engine", where=f"layer {number}", expected=expected, found=digest)
        return entries

    def copy_files(self, number: int, wanted: dict[int, list[Path]]) -> None:
        """Write files of a layer: by number of the entry, where to; the second place of one is a link to the first."""
        for entry_number, (entry, body) in enumerate(iter_entries(self._open(number))):
            places = wanted.get(entry_number, ())
            if not places:
                continue
            with places[0].open("xb") as target:
                while part := body.read(_READ_BYTES):
                    target.write(part)
            places[0].chmod(0o700 if entry.can_run else 0o600)
            for place in places[1:]:
                place.hardlink_to(places[0])

    def _open(self, number: int) -> BoundedStream:
        if self._layers is None:
            self._tar.seek(0)
            return BoundedStream(self._tar, _MOST_UNPACKED_BYTES, "archive")
        layer = self._layers[number]
        self._tar.seek(layer.position)
        magic = self._tar.read(4)
        section = Section(self._tar, layer.position, layer.size_bytes)
        return BoundedStream(unpacked(section, magic), _MOST_UNPACKED_BYTES, f"layer {number} of the archive")


def _make_room(tree: RootTree) -> None:
    """Take out what every sandbox makes anew, refuse what would stand in the node's places, make what is mounted on."""
    for name in MADE_ANEW:
        tree.hide((name,))
    for name in sorted(OWN_PLACES & tree.top.children.keys()):
        raise MalformedError("archive of an engine", where=f"'{name}'", expected="another name", found="the node's own")
    if len(tree.top.children) > _MOST_AT_TOP:
        found = f"{len(tree.top.children)} of them"
        raise MalformedError("archive of an engine", expected=f"at most {_MOST_AT_TOP} names at the top", found=found)
    for place in MOUNT_POINTS:
        names = tuple(place.rstrip("/").split("/"))
        folder = tree.top
        for number, name in enumerate(names if place.endswith("/") else names[:-1]):
            node = folder.children.setdefault(name, FolderNode())
            if not isinstance(node, FolderNode):
                where = "/".join(names[: number + 1])
                raise MalformedError(
                    "archive of an engine", where=f"'{where}'", expected="a folder", found="another thing"
                )
            folder = node
        if not place.endswith("/") and not isinstance(folder.children.get(names[-1]), FileNode):
            folder.children[names[-1]] = FileNode(_NOWHERE, 0, 0, can_run=False)


def _write(tree: RootTree, layers: _Layers, root: Path) -> None:
    """Write a tree, folders and links first; every folder on the way to a file is one that was made here."""
    root.mkdir(mode=0o700)
    wanted: dict[int, dict[int, list[Path]]] = {}
    total_bytes = 0
    for names, node in tree.walk():
        place = root.joinpath(*names)
        if isinstance(node, FolderNode):
            place.mkdir(mode=0o700)
        elif isinstance(node, LinkNode):
            place.symlink_to(node.target)
        elif node.layer == _NOWHERE:
            place.touch(mode=0o600, exist_ok=False)
        else:
            places = wanted.setdefault(node.layer, {}).setdefault(node.entry, [])
            total_bytes += 0 if places else node.size_bytes
            places.append(place)
    if total_bytes > _MOST_UNPACKED_BYTES:
        expected = f"at most {_MOST_UNPACKED_BYTES} bytes unpacked"
        raise MalformedError("archive of an engine", expected=expected, found=total_bytes)
    if (free_bytes := shutil.disk_usage(root).free) < total_bytes:
        raise OSError(errno.ENOSPC, f"{total_bytes} bytes are needed, {free_bytes} are free", str(root))
    for number, files in sorted(wanted.items()):
        layers.copy_files(number, files)
