"""What pushes of both protocols have in common: what they will still bring, where that waits, how it is read.

Source: clause EX-57 in ``spec/extensions/exchange.md``.
"""

import asyncio
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from aiohttp import web

from odf_node.configuration import Storage
from odf_node.ports.objects import ArrivingObjects, StoredObjects
from odf_node.ports.peer_client import OnBytes, SilentPeer
from odf_node.records.errors import ObjectNotFoundError
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class Expected:
    """The objects that a push names, and how many bytes of each have arrived, and so take room already."""

    wanted: Mapping[Multihash, WantedObject]
    count_arrived: Callable[[Multihash], int]


class Uploads:
    """The objects that open pushes name; used on the event loop only."""

    def __init__(self) -> None:
        self._expected: dict[str, Expected] = {}
        self._counting = asyncio.Lock()

    async def admit(self, push_id: str, expected: Expected, storage: Storage, objects: StoredObjects) -> str | None:
        """Count in all that a push names so far, or say what there is not enough of: ``quota`` or ``disk``.

        Pushes are counted one after the other: of two that fit only one by one, the first is taken.
        """
        async with self._counting:
            counted = {**self._expected, push_id: expected}
            if storage.quota_bytes or storage.least_free_bytes:
                lack = await asyncio.to_thread(_find_lack, storage, objects, tuple(counted.values()))
                if lack is not None:
                    return lack
            self._expected[push_id] = expected
            return None

    def forget(self, push_id: str) -> None:
        """Count a push no more: what arrived of it is counted as an object, and nothing else will come."""
        self._expected.pop(push_id, None)


UPLOADS: Final = web.AppKey("uploads", Uploads)


def _find_lack(storage: Storage, objects: StoredObjects, pushes: tuple[Expected, ...]) -> str | None:
    # What two pushes name is sent by each: neither learns of the other.
    missing_bytes = sum(
        max(0, item.size_bytes - push.count_arrived(item.hash)) for push in pushes for item in push.wanted.values()
    )
    room = objects.measure()
    if storage.quota_bytes and room.used_bytes + missing_bytes > storage.quota_bytes:
        return "quota"
    return "disk" if room.free_bytes - missing_bytes < storage.least_free_bytes else None


_LENGTH: Final = struct.Struct("<I")


class Spool:
    """Byte strings in the order in which they came. A context manager, for one thread at a time."""

    def __init__(self, folder: Path | None) -> None:
        """Open an empty one; ``folder`` is on the disk where it is to be, None: the system's temporary one."""
        # Its position is at its end but for the moment of a read.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it is the context manager

    @property
    def size_bytes(self) -> int:
        """What it takes on the disk."""
        return self._file.tell()

    def append(self, entry: bytes) -> None:
        """Put bytes behind the others."""
        self._file.write(_LENGTH.pack(len(entry)) + entry)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the entries that are here now; others may be appended meanwhile."""
        position, end = 0, self._file.tell()
        while position < end:
            self._file.seek(position)
            (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
            entry = self._file.read(length)
            position = self._file.tell()
            self._file.seek(0, os.SEEK_END)
            yield entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


class UploadedPeer(SilentPeer):
    """An upload as ``PeerDataset``: everything is here already, and as little trusted as if it were far away."""

    __slots__ = ()

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        """See ``PeerDataset``; what is wanted was uploaded before."""
        for item in wanted:
            if not objects.has(item.hash):
                raise ObjectNotFoundError(item.hash)
            if objects.get_size(item.hash) != item.size_bytes:
                raise RejectedError("EX-12 object-size", expected=item.size_bytes, found=objects.get_size(item.hash))
            if on_bytes is not None:
                on_bytes(item.size_bytes)
