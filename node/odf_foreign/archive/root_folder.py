"""The root folder that an archive stands for, on disk: read twice, bounded, and made by nobody but this program.

Source: clauses ADDED-11 to ADDED-17 in ``spec/plug-ins/foreign.md``.
"""

import errno
import os
import posixpath
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from odf_engines.sandbox.profile import MADE_ANEW
from odf_foreign.archive.image import Image, ImageLayer, find_image
from odf_foreign.archive.root_tree import FileNode, FolderNode, LinkNode, RootTree, check_link_target, put_layer
from odf_foreign.archive.tar_entries import (
    MAX_PATH_BYTES,
    BoundedStream,
    Section,
    TarEntry,
    iter_entries,
    magic_of,
    unpacked,
)
from odf_protocol.errors import MalformedError

MAX_FILE_BYTES: Final = 8 * 1024**3  # guess: images of Spark and Flink have 1 to 2 GiB
_MAX_UNPACKED_BYTES: Final = 16 * 1024**3  # guess: of all layers, and of all files of a root folder
_MAX_ENTRIES: Final = 500_000  # guess: of all layers; an image with Python and Java has 60,000
_MAX_NAMED_BYTES: Final = 256 * 1024**2  # guess: of all layers; 60,000 names of Python and Java have 6 MiB
_MAX_PLACES: Final = 10_000  # guess: BusyBox has 400 links to itself; ext4 takes 65,000
_MAX_AT_TOP: Final = 100  # guess: Linux has twenty; each is an argument of what builds the sandbox
_READ_BYTES: Final = 1024 * 1024
_NOWHERE: Final = -1  # of no layer: files that are empty


@dataclass(frozen=True, slots=True)
class Places:
    """What of a root folder is the node's.

    Attributes:
        mount_points: What has to be in it, since nothing can be made in it later; those that end with a slash are
            folders.
        own: Names at the top that an archive must not have.
    """

    mount_points: Collection[str]
    own: Collection[str] = ()


class OpenArchive:
    """An archive that can be unpacked.

    Attributes:
        image: What it says of itself; None where it is a tar of a root folder.
    """

    def __init__(self, tar: BinaryIO) -> None:
        self._tar = tar
        self.image: Image | None = find_image(tar, _list_members(tar))

    def unpack(self, root: Path, places: Places) -> tuple[str, ...]:
        """Write the root folder, and return what was changed of it, for people.

        Args:
            root: Where it shall be; does not exist yet.
            places: What in it is the node's.

        Raises:
            MalformedError, UnsupportedError: Nobody should unpack it.
            OSError: It cannot be written.
        """
        layers, tree = _Layers(self._tar, self.image), RootTree()
        for number in range(layers.count):
            put_layer(tree, layers.list_entries(number), number, has_marks=self.image is not None)
        _make_room(tree, places)
        _check_places(tree, root)
        _write(tree, layers, root)
        if not layers.with_privileges:
            return ()
        return (f"{layers.with_privileges} files would run as another user (setuid, setgid); here they do not",)


@contextmanager
def opened_archive(file: Path, scratch: Path) -> Iterator[OpenArchive]:
    """Open an archive.

    Args:
        file: Untrusted, of at most ``MAX_FILE_BYTES``; nobody else writes to it.
        scratch: Does not exist; where its bytes are while it is open, if it is packed as a whole.

    Raises:
        MalformedError, UnsupportedError: It is none.
    """
    with _as_plain_tar(file, scratch) as tar:
        yield OpenArchive(tar)


@contextmanager
def _as_plain_tar(file: Path, plain: Path) -> Iterator[BinaryIO]:
    """Open an archive; if it is packed as a whole, its bytes are written to ``plain`` first."""
    with file.open("rb") as packed:
        stream = unpacked(packed, magic := magic_of(file))
        if stream is packed:
            yield packed
            return
        bounded = BoundedStream(
            stream, _MAX_UNPACKED_BYTES, f"archive packed by {'gzip' if magic[0] == 0x1F else 'zstd'}"
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
    found, room = {}, _Room()
    for entry, _ in iter_entries(BoundedStream(tar, _MAX_UNPACKED_BYTES, "archive")):
        room.take(entry)
        found[posixpath.normpath(entry.path)] = entry
    return found


class _Room:
    """How many more entries may be kept."""

    def __init__(self) -> None:
        self._entries_left = _MAX_ENTRIES
        self._named_bytes_left = _MAX_NAMED_BYTES

    def take(self, entry: TarEntry) -> None:
        """Count an entry.

        Raises:
            MalformedError: There are too many, or their names are too long.
        """
        self._entries_left -= 1
        if self._entries_left < 0:
            raise MalformedError("archive", expected=f"at most {_MAX_ENTRIES} entries", found="more")
        self._named_bytes_left -= entry.named_bytes
        if self._named_bytes_left < 0:
            raise MalformedError("archive", expected=f"at most {_MAX_NAMED_BYTES} bytes of names", found="more")


class _Layers:
    """The layers of an archive, from below; a tar that is no image is one layer itself."""

    def __init__(self, tar: BinaryIO, image: Image | None) -> None:
        self._tar = tar
        self._layers: Sequence[ImageLayer] | None = None if image is None else image.layers
        self._room = _Room()
        self._unpacked_bytes = 0
        self.with_privileges = 0
        self.count = 1 if self._layers is None else len(self._layers)

    def list_entries(self, number: int) -> list[TarEntry]:
        """List the entries of a layer, and check that it is the one that the image names."""
        stream, entries = self._open(number, self._unpacked_bytes), []
        for entry, _ in iter_entries(stream):
            self._room.take(entry)
            entries.append(entry)
            self.with_privileges += entry.has_privileges
        digest = stream.finish()
        self._unpacked_bytes = stream.used_bytes
        if self._layers is not None and digest != self._layers[number].unpacked_hash:
            expected = f"the hash sha256:{self._layers[number].unpacked_hash}"
            raise MalformedError("archive", where=f"layer {number}", expected=expected, found=digest)
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

    def _open(self, number: int, used_bytes: int = 0) -> BoundedStream:
        if self._layers is None:
            self._tar.seek(0)
            return BoundedStream(self._tar, _MAX_UNPACKED_BYTES, "archive")
        layer = self._layers[number]
        self._tar.seek(layer.position)
        magic = self._tar.read(4)
        section = Section(self._tar, layer.position, layer.size_bytes)
        what = f"layer {number} of the archive, with those below"
        return BoundedStream(unpacked(section, magic), _MAX_UNPACKED_BYTES, what, used_bytes)


def _make_room(tree: RootTree, places: Places) -> None:
    """Take out what every sandbox makes anew, reject what would stand in the node's places, make what is mounted on."""
    for name in MADE_ANEW:
        tree.hide((name,))
    for name in sorted(tree.top.children.keys() & places.own):
        raise MalformedError("archive", where=f"'{name}'", expected="another name", found="the node's own")
    if len(tree.top.children) > _MAX_AT_TOP:
        found = f"{len(tree.top.children)} of them"
        raise MalformedError("archive", expected=f"at most {_MAX_AT_TOP} names at the top", found=found)
    for place in places.mount_points:
        names = tuple(place.rstrip("/").split("/"))
        folder = tree.top
        for number, name in enumerate(names if place.endswith("/") else names[:-1]):
            node = folder.children.setdefault(name, FolderNode())
            if not isinstance(node, FolderNode):
                where = "/".join(names[: number + 1])
                raise MalformedError("archive", where=f"'{where}'", expected="a folder", found="another thing")
            folder = node
        if not place.endswith("/") and not isinstance(folder.children.get(names[-1]), FileNode):
            folder.children[names[-1]] = FileNode(_NOWHERE, 0, 0, can_run=False)


def _check_places(tree: RootTree, root: Path) -> None:
    """Check what is known only of the whole tree: where links and long paths come to stand, and how often a file."""
    times: Counter[tuple[int, int]] = Counter()
    for names, node in tree.walk():
        if len(os.fsencode(root.joinpath(*names))) >= MAX_PATH_BYTES:
            expected = f"at most {MAX_PATH_BYTES} bytes of a path, with that of its folder here"
            raise MalformedError("archive", where=f"'{'/'.join(names)[:200]}'", expected=expected, found="more")
        if isinstance(node, LinkNode):
            check_link_target(names, node.target)
        elif isinstance(node, FileNode) and node.layer != _NOWHERE:
            times[node.layer, node.entry] += 1
    if times and (most := max(times.values())) > _MAX_PLACES:
        raise MalformedError("archive", expected=f"at most {_MAX_PLACES} hard links to one file", found=most)


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
    if total_bytes > _MAX_UNPACKED_BYTES:
        expected = f"at most {_MAX_UNPACKED_BYTES} bytes unpacked"
        raise MalformedError("archive", expected=expected, found=total_bytes)
    if (free_bytes := shutil.disk_usage(root).free) < total_bytes:
        raise OSError(errno.ENOSPC, f"{total_bytes} bytes are needed, {free_bytes} are free", str(root))
    for number, files in sorted(wanted.items()):
        layers.copy_files(number, files)
