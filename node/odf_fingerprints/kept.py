"""What a home keeps of fingerprints: signed documents by dataset and version, in a database of their own in the cache.

All of it can be made again: those of rows that are here are computed to the same bytes, those of peers asked for again.

Source: clause FP-2 in ``spec/plug-ins/fingerprints.md``.
"""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeBusyError, HomeFullError, HomeReadOnlyError, mapped_os_errors
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

FILE: Final = "fingerprints.sqlite"
_VERSION: Final = 1
_TIMEOUT_S: Final = 30.0  # as of the home's database
_PRIMARY_CODE: Final = 0xFF
_ROWS: Final = (
    "SELECT sequence, block, origin, document, current FROM fingerprints"
    " WHERE dataset = ? AND sequence > ? ORDER BY sequence, origin LIMIT ?"
)
_PAGE: Final = (
    "SELECT sequence, block, origin, document FROM fingerprints"
    " WHERE dataset = ? AND sequence > ? AND current IS NOT NULL ORDER BY sequence"
)
_COMPUTED: Final = "SELECT sequence, block FROM fingerprints WHERE dataset = ? AND current IS NOT NULL"
_CURRENT: Final = (
    "SELECT current FROM fingerprints WHERE dataset = ? AND sequence = ? AND block = ? AND current IS NOT NULL"
)
_DATASETS: Final = "SELECT DISTINCT dataset FROM fingerprints WHERE current IS NOT NULL"
_TABLES: Final = {
    "fingerprints": """
CREATE TABLE fingerprints (
    dataset TEXT NOT NULL, sequence INTEGER NOT NULL, block BLOB NOT NULL, origin TEXT NOT NULL,
    document BLOB NOT NULL, current BLOB, PRIMARY KEY (dataset, sequence, block, origin)
) WITHOUT ROWID
""",
    "disproved": """
CREATE TABLE disproved (
    dataset TEXT NOT NULL, document BLOB NOT NULL, difference TEXT NOT NULL, PRIMARY KEY (dataset, document)
) WITHOUT ROWID
""",
}


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


class KeptFingerprints:
    """Of one home; every call opens the database for itself."""

    def __init__(self, folder: HomeFolder) -> None:
        self._path = folder.cache / FILE

    def read(self, dataset: DatasetId, *, after: int = -1, limit: int = -1) -> list[KeptFingerprint]:
        """Read what is kept of a dataset, by number; of several origins all.

        Args:
            dataset: Which.
            after: Only later versions.
            limit: Of rows; -1: all.
        """
        return [
            KeptFingerprint(number, Multihash.decode(block), FingerprintOrigin(origin), document, current)
            for number, block, origin, document, current in self._list(_ROWS, str(dataset), after, limit)
        ]

    def read_page(self, dataset: DatasetId, *, after: int, max_bytes: int) -> list[KeptFingerprint]:
        """Read what was computed here of later versions, by number: as much as fits, and one in any case."""
        if not self._path.exists():
            return []
        found: list[KeptFingerprint] = []
        size = 0
        with self._opened() as connection, closing(connection.execute(_PAGE, (str(dataset), after))) as rows:
            for number, block, origin, document in rows:
                size += len(document)
                if found and size > max_bytes:
                    break
                found.append(KeptFingerprint(number, Multihash.decode(block), FingerprintOrigin(origin), document))
        return found

    def list_computed(self, dataset: DatasetId) -> set[tuple[int, Multihash]]:
        """List the versions of a dataset whose fingerprints were computed here, with all before them."""
        return {(number, Multihash.decode(block)) for number, block in self._list(_COMPUTED, str(dataset))}

    def find_current(self, dataset: DatasetId, sequence: int, block: Multihash) -> bytes | None:
        """Find what stands after a version."""
        rows = self._list(_CURRENT, str(dataset), sequence, block.to_bytes())
        return next((current for (current,) in rows), None)

    def list_datasets(self) -> set[str]:
        """List the datasets of which anything is kept that was computed here."""
        return {dataset for (dataset,) in self._list(_DATASETS)}

    def _list(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        if not self._path.exists():
            return []
        with self._opened() as connection:
            return connection.execute(statement, values).fetchall()

    def put(self, dataset: DatasetId, kept: Collection[KeptFingerprint]) -> None:
        """Keep fingerprints, in the place of those of the same versions and origins."""
        rows = [
            (str(dataset), each.sequence, each.block.to_bytes(), each.origin.value, each.document, each.current)
            for each in kept
        ]
        with self._opened() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO fingerprints VALUES (?, ?, ?, ?, ?, ?)", rows)

    def disprove(self, dataset: DatasetId, document: bytes, difference: str) -> None:
        """Keep a fingerprint that rows do not give, which its signer cannot deny, and what differs."""
        with self._opened() as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO disproved VALUES (?, ?, ?)", (str(dataset), document, difference)
            )

    def list_disproved(self, dataset: DatasetId) -> list[tuple[bytes, str]]:
        """List the fingerprints that rows did not give, and what differs."""
        found = self._list("SELECT document, difference FROM disproved WHERE dataset = ?", str(dataset))
        return [(document, difference) for document, difference in found]

    def forget(self, dataset: DatasetId) -> None:
        """Forget all of a dataset."""
        if self._path.exists():
            with self._opened() as connection, connection:
                connection.execute("DELETE FROM fingerprints WHERE dataset = ?", (str(dataset),))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with mapped_os_errors(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _mapped_errors(self._path), closing(self._connect()) as connection:
            yield connection

    def _connect(self) -> sqlite3.Connection:
        """Open the database; one that is broken is begun anew, as is a table of another version."""
        try:
            return self._open()
        except sqlite3.OperationalError:
            raise  # says nothing about what is in it
        except sqlite3.DatabaseError:
            pass
        self._path.unlink(missing_ok=True)
        return self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_TIMEOUT_S)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                with connection:
                    for name, table in _TABLES.items():
                        connection.execute(f"DROP TABLE IF EXISTS {name}")
                        connection.execute(table)
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def _mapped_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        code = error.sqlite_errorcode & _PRIMARY_CODE
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise HomeBusyError(path, _TIMEOUT_S) from error
        if code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
            raise HomeFullError(path, str(error)) from error
        if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}:
            raise HomeReadOnlyError(path, str(error)) from error
        raise
