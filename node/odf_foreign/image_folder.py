"""Added images in the home: a folder for each, under its name.

::

    images/<name, with % for what is no letter of a file's name>/image.json   what is known of it
    images/<...>/rootfs/                                                       what the sandbox shows of it
    images/images.lock                                                         held by whoever adds or removes

Source: clauses ING-40 and ING-41 in ``spec/plug-ins/foreign.md``, HOME-50.
"""

import os
import re
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from odf_engines.errors import EngineFailureError
from odf_engines.sandbox.disk import remove_tree
from odf_foreign.added.content import digest_of_contents
from odf_foreign.added.description import check_words
from odf_foreign.added_files import copy_bounded, held_alone, make_durable
from odf_foreign.archive import MAX_FILE_BYTES, Places, opened_archive
from odf_foreign.images import AddedImage, DamagedImage, ImageStart
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder, fsync_folder
from odf_node.records.errors import HomeCorruptError, mapped_os_errors
from odf_protocol.errors import MalformedError, NotFoundError
from odf_protocol.timestamp import Timestamp

_DESCRIPTION: Final = "image.json"
_ROOT: Final = "rootfs"
_LOCK: Final = "images.lock"
_MAX_DESCRIPTION_BYTES: Final = 1024 * 1024  # guess: as for engines
_PLACES: Final = Places(("opt/odf/out/", "etc/resolv.conf"))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")  # OCI distribution-spec, with hosts
_LAYOUT: Final = ("oci-layout", "index.json", "blobs")


class ImageFolder:
    """Added images by name; each is there whole, or not at all."""

    def __init__(self, home: HomeFolder) -> None:
        self._home = home

    def find(self, name: str) -> AddedImage | DamagedImage | None:
        """Find the image of a name."""
        if _NAME.fullmatch(name) is None or not (place := self._place_of(name)).is_dir():
            return None
        path = place / _DESCRIPTION
        try:
            with path.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_DESCRIPTION_BYTES), type=AddedImage)
        except (OSError, msgspec.MsgspecError) as error:
            if not place.is_dir():
                return None  # it was removed just now
            return DamagedImage(name=name, found=f"{path} is not what is known of an added image ({error})")

    def list(self) -> Sequence[AddedImage | DamagedImage]:
        """Return all, by name; one that is damaged keeps none of the others back."""
        if not self._home.images.is_dir():
            return ()
        names = sorted(unquote(path.name) for path in self._home.images.iterdir() if path.is_dir())
        return tuple(found for name in names if (found := self.find(name)) is not None)

    def open_root(self, image: AddedImage) -> Path:
        """Return its root folder, which nothing may write to.

        Raises:
            HomeCorruptError: Its files are not those that were added.
        """
        root = self._place_of(image.name) / _ROOT
        try:
            found = str(digest_of_contents(root, image.start, self._home.cache))
        except EngineFailureError as error:
            found = error.message
        if found != image.contents:
            damage = DamagedImage(name=image.name, found=f"it is not what was added: {image.contents}, found {found}")
            raise HomeCorruptError(root, damage.describe())
        return root

    def add(self, name: str, file: Path, *, has_network: bool, now: Timestamp) -> tuple[AddedImage, Sequence[str]]:
        """Take an image from an untrusted file; return it, and what was changed of it.

        Args:
            name: As manifests will name it.
            file: An image as tools save it, or the folder of an OCI layout.
            has_network: See ``AddedImage``.
            now: For people.

        Raises:
            UsageError: There is one of this name.
            MalformedError, UnsupportedError: The file is no image, or one that must not be unpacked.
            HomeFullError, HomeReadOnlyError: It cannot be written.
        """
        if _NAME.fullmatch(name) is None:
            expected = "a name as manifests have it, such as ghcr.io/owner/image:1.0, without a digest"
            raise MalformedError("name of an image", expected=expected, found=name)
        folder = self._home.images
        with mapped_os_errors(folder):
            self._home.create()
            folder.mkdir(mode=0o700, exist_ok=True)
        with held_alone(folder, _LOCK), mapped_os_errors(folder):
            place = self._place_of(name)
            if place.exists():
                raise UsageError(f"image '{name}' is here already; 'odf-node image remove {name}' forgets it")
            making = Path(tempfile.mkdtemp(prefix=".", dir=folder))
            try:
                image, notes = self._make(making, name, file, has_network, now)
                make_durable(making, (_DESCRIPTION,))
                making.rename(place)
            finally:
                remove_tree(making)
            fsync_folder(folder)
        return image, notes

    def remove(self, name: str) -> None:
        """Forget an image.

        Raises:
            NotFoundError: There is none of this name.
        """
        self._require(name)
        folder = self._home.images
        with held_alone(folder, _LOCK), mapped_os_errors(folder):
            self._require(name)  # somebody else may have removed it meanwhile
            # Gone at once, also for those who look while its files are removed.
            remove_tree(self._place_of(name).rename(folder / f".{os.getpid()}"))

    def _require(self, name: str) -> None:
        if self.find(name) is None:
            raise NotFoundError(f"there is no image '{name}' in this node; 'odf-node image list' shows them")

    def _place_of(self, name: str) -> Path:
        return self._home.images / quote(name, safe="")

    def _make(
        self, making: Path, name: str, file: Path, has_network: bool, now: Timestamp
    ) -> tuple[AddedImage, Sequence[str]]:
        given, root = making / "file", making / _ROOT
        if file.is_dir():
            _pack_layout(file, given)
        else:
            copy_bounded(file, given, MAX_FILE_BYTES, "image")
        with opened_archive(given, making / "file.tar") as archive:
            if (image := archive.image) is None:
                expected = "an image, as 'podman save --format oci-archive' or 'docker save' write it"
                raise MalformedError("image", where=str(file), expected=expected, found="another archive")
            start = ImageStart(
                entry_point=image.entry_point,
                arguments=image.arguments,
                environment=image.environment,
                folder=image.folder,
            )
            check_words("image", image.command, image.environment, image.folder)
            notes = archive.unpack(root, _PLACES)
        file_bytes = given.stat().st_size
        given.unlink()
        added = AddedImage(
            name=name,
            digests=image.digests,
            contents=str(digest_of_contents(root, start, self._home.cache)),
            start=start,
            has_network=has_network,
            file_bytes=file_bytes,
            added_at=str(now),
        )
        (making / _DESCRIPTION).write_bytes(msgspec.json.format(msgspec.json.encode(added)))
        return added, notes


def _pack_layout(layout: Path, target: Path) -> None:
    """Write the folder of an OCI layout as a tar, which is read as any other is.

    Raises:
        MalformedError: It is none, or its files are larger than an image's may be.
    """
    left = MAX_FILE_BYTES

    def count(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        nonlocal left
        left -= entry.size
        if left < 0:
            expected = f"files of at most {MAX_FILE_BYTES} bytes"
            raise MalformedError("image", where=str(layout), expected=expected, found="more")
        return entry

    with tarfile.open(target, "x", format=tarfile.PAX_FORMAT) as tar:
        for name in _LAYOUT:
            if not (layout / name).exists():
                raise MalformedError(
                    "image", where=str(layout), expected="the folder of an OCI layout", found=f"no {name}"
                )
            tar.add(layout / name, arcname=name, filter=count)
