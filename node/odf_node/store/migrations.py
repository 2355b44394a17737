"""Steps from the tables of earlier versions to those of the next one.

Source: clause HOME-6 in ``spec/home.md``.
"""

import sqlite3
from collections.abc import Iterator
from typing import Final

AUDIT_1: Final = """\
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    command TEXT NOT NULL,
    subject TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only appended to'); END;
CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only appended to'); END;
"""
"""The audit log of version 1, the last of its tables."""


def add_records_of_accesses(connection: sqlite3.Connection, tables: str) -> None:
    """Make the tables of the audit log anew, with the lines that it has: a line may be a record of a read or write.

    Args:
        connection: Inside a transaction.
        tables: The statements that make the tables of the log, in version 2.
    """
    for name in ("audit_is_never_changed", "audit_is_never_removed"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("ALTER TABLE audit RENAME TO audit_before")
    for statement in _statements(tables):
        connection.execute(statement)
    columns = "id, at, actor, command, subject, outcome, detail"
    connection.execute(f"INSERT INTO audit ({columns}) SELECT {columns} FROM audit_before ORDER BY id")  # noqa: S608
    connection.execute("DROP TABLE audit_before")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
