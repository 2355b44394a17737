"""One SQLite database, many threads and processes: connections, transactions, errors.

A connection is lent to one thread for one transaction. Reads see one snapshot; writes begin IMMEDIATE, so that the
compare of a compare-and-swap cannot be overtaken between read and write.
"""

import os
import random
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Lock
from typing import Any, Final, TypeVar

from odf_node.home_folder import HomeFolder
from odf_node.records.errors import (
    HomeBusyError,
    HomeCorruptError,
    HomeFullError,
    HomeReadOnlyError,
    HomeVersionError,
    mapped_os_errors,
)
from odf_node.store import schema
from odf_node.store.forks import ForkGate
from odf_node.store.writers_lock import shared_lease
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError

BUSY_TIMEOUT_S: Final = 30.0  # guess: a commit holds the lock for milliseconds, a commit of a long chain for seconds

ADDING_TIMEOUT_S: Final = 2.0  # guess: what is added so may be lost, and nobody waits long for it

ALONE_TIMEOUT_S: Final = 0.2  # guess: some reads of others

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_CORRUPT: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_READ_ONLY: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}
_NO_INDEX: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_PRIMARY_CODE: Final = 0xFF  # the low byte of an extended result code (SQLite "Result and Error Codes")

_Value = TypeVar("_Value")


class Database:
    """The home's database; opens what exists, is empty where nothing does, makes it on the first write."""

    def __init__(self, home: HomeFolder, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._home = home
        self._path = str(home.database)  # asked for at every read: joining paths took a third of one
        self._busy_timeout_s = busy_timeout_s
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        # For reads of what does not exist: making all tables takes longer than most of these.
        self._empty: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._alone: sqlite3.Connection | None = None
        self._alone_readers = 0
        self._alone_lock = Lock()
        self._looking: sqlite3.Connection | None = None
        self._looking_lock = Lock()
        self._is_closed = False
        self._gate = ForkGate(self._close_idle)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a read transaction: every statement sees the same state."""
        with self._gate, self._mapped_errors(), self._borrowed(create=False) as connection:
            if connection is self._alone:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a write transaction: committed and durable on leaving, undone on any error."""
        with self._gate, self._mapped_errors(), self._borrowed(create=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A failed COMMIT may have rolled back by itself; then there is nothing to undo.
                with suppress(sqlite3.OperationalError):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def adding(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection as ``writing`` does, but wait shortly for others, and not for the disk.

        For what a power cut may take with it; the end of this process takes nothing. The next commit makes it durable.

        Raises:
            HomeBusyError: Others wrote all the time.
        """
        with self._gate, self._mapped_errors(), self._borrowed(create=True) as connection:
            connection.execute(f"PRAGMA busy_timeout = {int(ADDING_TIMEOUT_S * 1000)}")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.OperationalError):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA busy_timeout = {int(self._busy_timeout_s * 1000)}")

    def read_change(self) -> object:
        """Return what is equal to the last answer as long as nobody, of whatever process, has committed since.

        Where that cannot be found out, no answer is equal to another. Source: SQLite "PRAGMA data_version", which
        counts what others than the asking connection committed; this one commits nothing.
        """
        with self._gate, self._looking_lock:
            try:
                if self._looking is None:
                    if self._is_closed or not os.path.exists(self._path):  # noqa: PTH110 - as above
                        return object()
                    self._looking = self._open(is_alone=False)
                if _is_outdated(self._looking, self._home.database):
                    self._stop_looking()
                    return object()
                return self._looking.execute("PRAGMA data_version").fetchone()[0]
            except (sqlite3.DatabaseError, OdfError):
                self._stop_looking()
                return object()

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.close()
            self._looking = None

    @property
    def path(self) -> Path:
        """Where it is, or will be."""
        return self._home.database

    def close(self) -> None:
        """Close idle connections, and those that are lent when they come back; the last one folds the log in."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with self._looking_lock:
            self._stop_looking()
        for connections in (self._idle, self._empty):
            with suppress(Empty):
                while True:
                    connections.get_nowait().close()

    @contextmanager
    def _borrowed(self, *, create: bool) -> Iterator[sqlite3.Connection]:
        if not os.path.exists(self._path):  # noqa: PTH110 - as above
            if not create:
                yield from self._lend(self._take_empty(), self._empty)
                return
            _create(self._home)
        if self._alone is not None and not create:
            with self._sharing_alone() as alone:
                yield alone
            return
        try:
            connection = self._take()
        except sqlite3.OperationalError as error:
            if create or primary_code(error) not in _NO_INDEX:
                raise
            with self._sharing_alone(error) as alone:
                yield alone
            return
        yield from self._lend(connection, self._idle)

    def _lend(
        self, connection: sqlite3.Connection, waiting: "LifoQueue[sqlite3.Connection]"
    ) -> Iterator[sqlite3.Connection]:
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        waiting.put(connection)
        if self._is_closed:  # meanwhile, by another thread
            self.close()

    def _take_empty(self) -> sqlite3.Connection:
        try:
            return self._empty.get_nowait()
        except Empty:
            return _open_empty()

    def _take(self) -> sqlite3.Connection:
        with suppress(Empty):
            connection = self._idle.get_nowait()
            if not _is_outdated(connection, self._home.database):
                return connection
            connection.close()
        return self._open(is_alone=False)

    def _open(self, *, is_alone: bool) -> sqlite3.Connection:
        connection = _connect(self._home.database, ALONE_TIMEOUT_S if is_alone else self._busy_timeout_s)
        try:
            _set_up(connection, is_alone=is_alone)
            _check_version(connection, self._home.database)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _sharing_alone(self, failure: sqlite3.OperationalError | None = None) -> Iterator[sqlite3.Connection]:
        """Read where there is no room for the index that processes share: it is in memory then (HOME-49).

        For as long as such a connection is open nobody else gets in. So all who read here at once share one, with one
        transaction, and the last one closes it. Source: SQLite "Write-Ahead Logging", section "Use of WAL Without
        Shared-Memory".
        """
        with self._alone_lock:
            if self._alone is None:
                self._alone = self._open_alone(failure)
            alone = self._alone
            self._alone_readers += 1
        try:
            yield alone
        finally:
            with self._alone_lock:
                self._alone_readers -= 1
                if not self._alone_readers:
                    self._alone = None
                    alone.close()

    def _open_alone(self, failure: sqlite3.OperationalError | None) -> sqlite3.Connection:
        give_up_s = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                connection = self._open(is_alone=True)
                connection.execute("BEGIN")
            except sqlite3.OperationalError as error:
                if primary_code(error) not in _BUSY:
                    raise failure or error from None
                # Several who come at once keep each other out, and go all of them before they come again.
                if time.monotonic() > give_up_s:
                    raise
                time.sleep(random.uniform(0.01, ALONE_TIMEOUT_S))  # noqa: S311 - no secret
                continue
            return connection

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            mapped = map_database_error(error, self._home.database, self._busy_timeout_s)
            if mapped is None:
                raise
            raise mapped from error
        except (MalformedError, UnsupportedError) as error:
            # Columns hold what was encoded here; what cannot be decoded was changed behind our back.
            if isinstance(error, HomeVersionError):
                raise
            raise HomeCorruptError(self._home.database, f"a row cannot be read: {error}") from error


def map_database_error(error: sqlite3.DatabaseError, path: Path, timeout_s: float) -> OdfError | None:
    """Give the error of a home that an error of SQLite stands for; None: it is a fault of the program."""
    reason, primary = str(error), primary_code(error)
    if primary in _BUSY:
        return HomeBusyError(path, timeout_s)
    if primary in _CORRUPT:
        return HomeCorruptError(path, f"the database is damaged: {reason}")
    if primary in _READ_ONLY:
        return HomeReadOnlyError(path, reason)
    if primary in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
        return HomeFullError(path, reason)
    return None


class StoreTables:
    """What every port has in common: the database that all of them share, and transactions of one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _list(self, read: Callable[[tuple[Any, ...]], _Value], statement: str, *values: object) -> tuple[_Value, ...]:
        """Return what ``read`` makes of each row that a statement finds."""
        with self._database.reading() as connection:
            return tuple(read(row) for row in connection.execute(statement, values))

    def _find(self, read: Callable[[tuple[Any, ...]], _Value], statement: str, *values: object) -> _Value | None:
        """Return what ``read`` makes of the first row that a statement finds; None: there is none."""
        with self._database.reading() as connection:
            row = connection.execute(statement, values).fetchone()
            return None if row is None else read(row)

    def _write(self, statement: str, *values: object) -> int:
        """Execute a statement, durably; returns how many rows it changed."""
        with self._database.writing() as connection:
            return connection.execute(statement, values).rowcount


def primary_code(error: sqlite3.DatabaseError) -> int | None:
    """Give the result code of SQLite's behind an error; None: the library does not say."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY_CODE


class _Frozen(sqlite3.Connection):
    """Takes the file for one that nobody writes (HOME-4), and so does not see when somebody else does after all."""

    seen: object = None


def _is_outdated(connection: sqlite3.Connection, path: Path) -> bool:
    return isinstance(connection, _Frozen) and connection.seen != _look_at(path)


def _look_at(path: Path) -> object:
    """Return a tuple that changes when anybody writes; something else while there is a log, or nothing at all."""
    if path.with_name(f"{path.name}-wal").exists():
        return object()
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    # Without write access SQLite cannot make its shared index. With no log there is nothing it would be needed for.
    seen = None if writable else _look_at(path)
    mode = "mode=rw" if writable else "immutable=1" if isinstance(seen, tuple) else "mode=ro"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,  # lent to one thread at a time
        factory=_Frozen if mode == "immutable=1" else sqlite3.Connection,
    )
    if isinstance(connection, _Frozen):
        connection.seen = seen
    return connection


def _set_up(connection: sqlite3.Connection, *, is_alone: bool) -> None:
    if is_alone:  # first of all: the others look at the file already
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    # FULL: a commit is on the disk when it returns (WAL with NORMAL may lose the newest ones at a power cut).
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    application_id, stamp = schema.read_version(connection)
    if application_id != schema.APPLICATION_ID:
        raise HomeCorruptError(path, "expected a database of odf-node, found another one")
    if stamp == schema.STAMP:
        return
    if not schema.can_migrate(stamp):
        is_newer = schema.version_of(stamp) > schema.SCHEMA_VERSION
        raise HomeVersionError(
            path, schema.describe_stamp(schema.STAMP), schema.describe_stamp(stamp), is_newer=is_newer
        )
    schema.migrate(connection)


def _open_empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)  # as those of files
    schema.create_tables(connection)
    return connection


def _create(home: HomeFolder) -> None:
    # Made whole under another name and then linked: whoever opens the database finds all tables, and of several
    # processes that make a home at once one wins and the others use its database.
    with shared_lease(home), mapped_os_errors(home.path):
        draft = home.staging / f"database-{secrets.token_hex(8)}"
        try:
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                # Nobody knows it yet: one fsync of all of it does for one of every step.
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("PRAGMA journal_mode = WAL")
                schema.create_tables(connection)
            draft.chmod(0o600)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, home.database)
            home.make_durable()
        finally:
            draft.unlink(missing_ok=True)
