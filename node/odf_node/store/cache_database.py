"""A database in a home's cache: what it holds can be made again, so one that is damaged or of another version is.

Source: clauses FP-2 in ``spec/plug-ins/fingerprints.md`` and CONTRACT-7 in ``spec/plug-ins/contracts.md``.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeVar

from odf_node.records.errors import mapped_os_errors
from odf_node.store.database import BUSY_TIMEOUT_S, map_database_error, primary_code
from odf_protocol.errors import MalformedError

_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
"""Tables and values are of one module alone: a statement that fails says that they are not what it put there."""

Found = TypeVar("Found")


class CacheDatabase:
    """Opened anew for each use, by any process.

    Args:
        path: Of the file.
        version: Of the tables and of what stands in them, from 1.
        make: Statements that make the tables, where others of theirs may be there.
    """

    def __init__(self, path: Path, version: int, make: Sequence[str]) -> None:
        self._path, self._version = path, version
        self._make = (*make, f"PRAGMA user_version = {version}")

    def read(self, nothing: Found, work: Callable[[sqlite3.Connection], Found]) -> Found:
        """Use the database where there is one; else give ``nothing``."""
        return self.use(work) if self._path.exists() else nothing

    def use(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        """Do something with the database; where it is damaged anywhere, once more with a new one.

        Args:
            work: Raises ``MalformedError``, ``ValueError`` or ``TypeError`` where a row is not what was put there.

        Raises:
            HomeBusyError, HomeFullError, HomeReadOnlyError, HomeCorruptError: As the home's database.
        """
        with mapped_os_errors(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                return self._use(work)
            except sqlite3.DatabaseError as error:
                mapped = map_database_error(error, self._path, BUSY_TIMEOUT_S)
                if mapped is None:
                    raise
                raise mapped from error

    def _use(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        file = self._find_file()
        try:
            return self._work(work)
        except (sqlite3.DatabaseError, MalformedError, ValueError, TypeError) as error:
            if isinstance(error, sqlite3.DatabaseError) and primary_code(error) not in _DAMAGED:
                raise
        if self._find_file() == file:  # else another process has begun it anew
            for suffix in ("", "-journal"):
                self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        return self._work(work)

    def _work(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        with closing(sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S)) as connection:
            if not self._is_current(connection):
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    if not self._is_current(connection):  # another process may have made them just now
                        for statement in self._make:
                            connection.execute(statement)
            return work(connection)

    def _is_current(self, connection: sqlite3.Connection) -> bool:
        return bool(connection.execute("PRAGMA user_version").fetchone() == (self._version,))

    def _find_file(self) -> int | None:
        with suppress(FileNotFoundError):
            return self._path.stat().st_ino
        return None
