"""Which objects are kept although no row names them: lists beside stopped downloads, one per dataset (HOME-19).

A list is written before the first object arrives and goes with the commit or the refusal, so also after ``kill -9``
every object of a pull that broke is on one.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from odf_node.home import Home
from odf_node.os_errors import mapped_os_errors
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash

_SUFFIX: Final = ".wanted"


class Reservations:
    """The lists of one home; making the value touches nothing."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def write(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Keep these objects, instead of those that were kept for the dataset before."""
        self._home.create()
        place = self._place(dataset_id)
        draft = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
        with mapped_os_errors(place):
            # Not made durable: after a power cut objects may have to come again, and nothing is lost.
            draft.write_text("".join(f"{object_hash}\n" for object_hash in hashes), encoding="ascii")
            draft.rename(place)

    def remove(self, dataset_id: DatasetId) -> None:
        """Keep nothing for the dataset any more."""
        place = self._place(dataset_id)
        with mapped_os_errors(place):
            place.unlink(missing_ok=True)

    def iter_reserved(self, since_s: float) -> Iterator[Multihash]:
        """Yield the objects on lists written after ``since_s`` (Unix time)."""
        with suppress(FileNotFoundError):
            for path in self._home.downloads.iterdir():
                if path.suffix == _SUFFIX and path.lstat().st_mtime > since_s:
                    yield from _read(path)

    def _place(self, dataset_id: DatasetId) -> Path:
        return self._home.downloads / f"{dataset_id.public_key.hex()}{_SUFFIX}"


def _read(path: Path) -> Iterator[Multihash]:
    with path.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            # What a full disk or a hand left unreadable costs a download, not the sweep.
            with suppress(MalformedError):
                yield Multihash.parse(line.removesuffix("\n"))
