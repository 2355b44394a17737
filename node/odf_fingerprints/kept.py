"""What a home keeps of fingerprints: signed documents by dataset and version, in a database of their own in the cache.

All of it can be made again: those of rows that are here are computed to the same bytes, those of peers asked for again.

Source: clause FP-2 in ``spec/plug-ins/fingerprints.md``.
"""

import sqlite3
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from odf_node.home_folder import HomeFolder
from odf_node.store.cache_database import CacheDatabase
from odf_protocol.did import DatasetId
from odf_protocol.errors import UnavailableError
from odf_protocol.multihash import Multihash

FILE: Final = "fingerprints.sqlite"
_VERSION: Final = 2
"""Of the tables, and of how folds are made that are kept in them."""
_ROWS: Final = (
    "SELECT sequence, block, origin, document, current, crc FROM fingerprints"
    " WHERE dataset = ? AND sequence > ? ORDER BY sequence, origin LIMIT ?"
)
_PAGE: Final = (
    "SELECT sequence, block, origin, document, current, crc FROM fingerprints"
    " WHERE dataset = ? AND sequence > ? AND current IS NOT NULL ORDER BY sequence"
)
_COMPUTED: Final = (
    "SELECT sequence, block FROM fingerprints WHERE dataset = ? AND current IS NOT NULL ORDER BY sequence DESC"
)
_ONE: Final = (
    "SELECT sequence, block, origin, document, current, crc FROM fingerprints"
    " WHERE dataset = ? AND sequence = ? AND block = ? AND current IS NOT NULL"
)
_FORGET_OTHER: Final = (
    "DELETE FROM fingerprints WHERE dataset = ? AND sequence = ? AND block = ? AND current IS NOT NULL"
)
_PUT: Final = "INSERT OR REPLACE INTO fingerprints VALUES (?, ?, ?, ?, ?, ?, ?)"
# One step down the index for each dataset; DISTINCT reads all of it.
_DATASETS: Final = """
WITH RECURSIVE each(dataset) AS (
    SELECT min(dataset) FROM fingerprints
    UNION ALL SELECT (SELECT min(dataset) FROM fingerprints WHERE dataset > each.dataset) FROM each
        WHERE each.dataset IS NOT NULL
)
SELECT dataset FROM each WHERE dataset IS NOT NULL
"""
_MAKE: Final = (
    "DROP TABLE IF EXISTS fingerprints",
    "DROP TABLE IF EXISTS disproved",  # of version 1
    """
CREATE TABLE fingerprints (
    dataset TEXT NOT NULL, sequence INTEGER NOT NULL, block BLOB NOT NULL, origin TEXT NOT NULL,
    document BLOB NOT NULL, current BLOB, crc INTEGER NOT NULL, PRIMARY KEY (dataset, sequence, block, origin)
) WITHOUT ROWID
""",
)
Version = tuple[int, Multihash]
"""The number and the hash of a block."""


class FingerprintOrigin(StrEnum):
    """Who computed a fingerprint."""

    OWN = "own"
    """This node, of a dataset of its own."""
    HERE = "computed here"
    """This node, of rows of others."""
    PEER = "peer"
    """Another node, of rows that were not looked at here."""


@dataclass(frozen=True, slots=True)
class KeptFingerprint:
    """One row.

    Attributes:
        sequence: Number of the block.
        block: Its hash.
        origin: Who computed it.
        document: The signed document.
        current: What stands after it, as canonical JSON, where all before it were computed here; else None.
    """

    sequence: int
    block: Multihash
    origin: FingerprintOrigin
    document: bytes
    current: bytes | None = None

    @property
    def version(self) -> Version:
        """Which block it is about."""
        return self.sequence, self.block


class KeptFingerprints:
    """Of one home; every call opens the database for itself.

    What was computed here is kept without gaps from the first version on: a version goes in behind the one before it.
    """

    def __init__(self, folder: HomeFolder) -> None:
        self._path = folder.cache / FILE
        self._database = CacheDatabase(self._path, _VERSION, _MAKE)

    def read(self, dataset: DatasetId, *, after: int = -1, limit: int = -1) -> list[KeptFingerprint]:
        """Read what is kept of a dataset, by number; of several origins all.

        Args:
            dataset: Which.
            after: Only later versions.
            limit: Of rows; -1: all.
        """
        return self._database.read(
            [], lambda opened: [*map(_kept, opened.execute(_ROWS, (str(dataset), after, limit)))]
        )

    def read_page(self, dataset: DatasetId, *, after: int, max_bytes: int) -> list[KeptFingerprint]:
        """Read what was computed here of later versions, by number: as much as fits, and one in any case."""

        def work(connection: sqlite3.Connection) -> list[KeptFingerprint]:
            found: list[KeptFingerprint] = []
            size = 0
            with closing(connection.execute(_PAGE, (str(dataset), after))) as rows:
                for each in map(_kept, rows):
                    size += len(each.document)
                    if found and size > max_bytes:
                        break
                    found.append(each)
            return found

        return self._database.read([], work)

    def find_newest(self, dataset: DatasetId, is_present: Callable[[int, Multihash], bool]) -> KeptFingerprint | None:
        """Find the newest of the present history that was computed here, with all before it; forget those of others.

        Args:
            dataset: Which.
            is_present: Says of the number and the hash of a block whether it is in the present history.
        """

        def work(connection: sqlite3.Connection) -> KeptFingerprint | None:
            others: list[tuple[str, int, bytes]] = []
            newest = None
            with closing(connection.execute(_COMPUTED, (str(dataset),))) as rows:
                for number, block in rows:
                    if is_present(number, Multihash.decode(block)):
                        newest = number, block
                        break
                    others.append((str(dataset), number, block))
            with connection:
                connection.executemany(_FORGET_OTHER, others)
            found = None if newest is None else connection.execute(_ONE, (str(dataset), *newest)).fetchone()
            return None if found is None else _kept(found)

        return self._database.read(None, work)

    def list_datasets(self) -> set[str]:
        """List the datasets of which anything is kept."""
        return self._database.read(set(), lambda opened: {dataset for (dataset,) in opened.execute(_DATASETS)})

    def put(self, dataset: DatasetId, stated: Collection[KeptFingerprint]) -> None:
        """Keep what another node stated, in the place of what it stated of the same versions."""

        def work(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(_PUT, [_row(dataset, each) for each in stated])

        self._database.use(work)

    def append(self, dataset: DatasetId, computed: Collection[KeptFingerprint], *, behind: Version | None) -> None:
        """Keep what was computed here behind the version before it.

        Args:
            dataset: Which.
            computed: Of versions that follow each other, each with what stands after it.
            behind: The version with rows before them; None: there is none.

        Raises:
            UnavailableError: That one is gone: the cache was emptied meanwhile.
        """

        def work(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                if behind is not None:
                    number, block = behind
                    if connection.execute(_ONE, (str(dataset), number, block.to_bytes())).fetchone() is None:
                        return False
                connection.executemany(_PUT, [_row(dataset, each) for each in computed])
                return True

        if not self._database.use(work):
            raise UnavailableError(f"{self._path} was emptied while fingerprints were computed; try again")

    def forget(self, dataset: DatasetId) -> None:
        """Forget all of a dataset."""

        def work(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("DELETE FROM fingerprints WHERE dataset = ?", (str(dataset),))

        self._database.read(None, work)


def _kept(row: Sequence[Any]) -> KeptFingerprint:
    number, block, origin, document, current, crc = row
    if crc != crc_of(document, current):
        raise ValueError("not what was kept")
    return KeptFingerprint(number, Multihash.decode(block), FingerprintOrigin(origin), document, current)


def _row(dataset: DatasetId, kept: KeptFingerprint) -> tuple[object, ...]:
    crc = crc_of(kept.document, kept.current)
    return str(dataset), kept.sequence, kept.block.to_bytes(), kept.origin.value, kept.document, kept.current, crc


def crc_of(document: bytes, current: bytes | None) -> int:
    """Return what is kept beside a fingerprint: pages of SQLite have no checksum, and a cut or decayed one is found."""
    return zlib.crc32(current or b"", zlib.crc32(document))
