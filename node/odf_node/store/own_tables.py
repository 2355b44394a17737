"""Whether a database from elsewhere is one that this program made, before anybody asks it anything.

A view or a trigger of somebody else would answer, and act, in the place of the tables for as long as the home lives.

Source: clause HOME-43 in ``spec/home.md``.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from odf_node.store import schema
from odf_protocol.errors import MalformedError


def require_own_tables(database: Path, origin: str) -> None:
    """Require that a database has the tables, indexes and triggers of this build, no others, and is whole.

    Of a database of another build, which opening it tells, nothing is known.

    Args:
        database: A file that nobody else writes.
        origin: How messages call it.

    Raises:
        MalformedError: It is not.
    """
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            other = _find_difference(connection) or _find_damage(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        other = str(error)
    if other is not None:
        expected = "a database as this program makes it"
        raise MalformedError("backup", where=origin, expected=expected, found=other[:300])


def migrate_copy(database: Path) -> None:
    """Bring the tables of a database that nobody else uses, and whose tables were found to be ours, to this version."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        if schema.can_migrate(schema.read_version(connection)[1]):
            schema.migrate(connection)


def _find_difference(connection: sqlite3.Connection) -> str | None:
    application_id, stamp = schema.read_version(connection)
    if application_id != schema.APPLICATION_ID or not schema.is_known(stamp):
        return None
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        schema.create_tables(ours, stamp)
        asked = "SELECT type, name, tbl_name, sql FROM sqlite_master"
        made, found = (set(each.execute(asked)) for each in (ours, connection))
    other = min(made ^ found, key=repr, default=None)
    return None if other is None else f"another {other[0]} {other[1]!r}"


def _find_damage(connection: sqlite3.Connection) -> str | None:
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return None if verdict == "ok" else str(verdict)
