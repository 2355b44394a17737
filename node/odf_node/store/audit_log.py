"""Records of reads and writes in the audit log: sealed rows, which a plug-in makes (``ports.access``).

A sealed row has the hash of all rows before it and a signature, so lines of the core are part of the chain as soon as
anything behind them is sealed. What a row says is the plug-in's; order, numbers and transactions are the store's.

Source: clauses AUDIT-4 to AUDIT-9 in ``spec/plug-ins/audit.md``; HOME-57 in ``spec/home.md``.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple
from typing import Final

from odf_node.ports.access import Seal
from odf_node.records.audit import AuditArchive, AuditRow, AuditSeal
from odf_node.store.access import read_entry
from odf_node.store.database import StoreTables
from odf_node.store.rows import as_int

NO_CHAIN: Final = bytes(32)
"""What a chain begins with."""

_COLUMNS: Final = "id, at, actor, command, subject, outcome, detail, run, record, before, chain, signature"
_SELECT: Final = f"SELECT {_COLUMNS} FROM audit"  # noqa: S608 - constants
_INSERT: Final = f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants


def insert_sealed(connection: sqlite3.Connection, seal: Seal) -> None:
    """Add rows of a plug-in behind all others, in the transaction that runs."""
    newest = connection.execute("SELECT id, chain FROM audit WHERE chain IS NOT NULL ORDER BY id DESC LIMIT 1")
    archived = connection.execute("SELECT last, chain FROM audit_archives ORDER BY last DESC LIMIT 1")
    found = [row for row in (newest.fetchone(), archived.fetchone()) if row is not None]
    sealed, chain = max(found, default=(0, NO_CHAIN))
    rows = connection.execute(f"{_SELECT} WHERE id > ? ORDER BY id", (sealed,)).fetchall()
    # Not the greatest number that there is: of rows that were removed none is given again.
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
    for row in seal(chain, [_read_row(row) for row in rows], 1 + (0 if last is None else as_int(last[0]))):
        connection.execute(_INSERT, _values(row))


class SealedAuditTables(StoreTables):
    """Records of reads and writes."""

    def append_sealed(self, seal: Seal) -> None:
        """Add rows of a plug-in, in a transaction that a power cut may undo, and the end of the process does not.

        Raises:
            HomeBusyError: Others write for longer than a read may wait.
        """
        with self._database.adding() as connection:
            insert_sealed(connection, seal)

    def list_audit_rows(self, after: int, limit: int) -> tuple[AuditRow, ...]:
        """List rows of the audit log by their numbers, lines and records."""
        return self._list(_read_row, f"{_SELECT} WHERE id > ? ORDER BY id LIMIT ?", after, limit)

    def list_records_of_subject(self, subject: str, command: str, limit: int) -> tuple[AuditRow, ...]:
        """List the newest records of a kind about a dataset or run, oldest first."""
        statement = f"{_SELECT} WHERE record IS NOT NULL AND subject = ? AND command = ? ORDER BY id DESC LIMIT ?"
        return tuple(reversed(self._list(_read_row, statement, subject, command, limit)))

    def list_records_of_run(self, run: str, limit: int) -> tuple[AuditRow, ...]:
        """List the oldest records of a run, oldest first."""
        return self._list(_read_row, f"{_SELECT} WHERE record IS NOT NULL AND run = ? ORDER BY id LIMIT ?", run, limit)

    def list_records(self, command: str, limit: int) -> tuple[AuditRow, ...]:
        """List the newest records of a kind, oldest first."""
        statement = f"{_SELECT} WHERE record IS NOT NULL AND command = ? ORDER BY id DESC LIMIT ?"
        return tuple(reversed(self._list(_read_row, statement, command, limit)))

    def count_reads(self) -> int:
        """Count the records of reads."""
        statement = "SELECT count(*) FROM audit WHERE command = 'read' AND record IS NOT NULL"
        found = self._find(lambda row: as_int(row[0]), statement)
        return 0 if found is None else found

    def find_archive_end(self, reads: int) -> int | None:
        """Find the newest signed row that is not behind the read after the oldest so many; None: there is none."""
        statement = (
            "SELECT max(id) FROM audit WHERE signature IS NOT NULL AND id <= (SELECT id FROM audit"
            " WHERE command = 'read' AND record IS NOT NULL ORDER BY id LIMIT 1 OFFSET ?)"
        )
        found = self._find(lambda row: row[0], statement, reads)
        return None if found is None else as_int(found)

    def list_archives(self) -> tuple[AuditArchive, ...]:
        """List the archives that were made, oldest first."""
        return self._list(
            lambda row: AuditArchive(first=row[0], last=row[1], chain=row[2], signature=row[3]),
            "SELECT first, last, chain, signature FROM audit_archives ORDER BY last",
        )

    def put_archive(self, archive: AuditArchive) -> bool:
        """Note that rows were copied, and remove the reads among them, and runs that wrote nothing.

        Returns:
            False: somebody else did so first, and nothing changed.
        """
        with self._database.writing() as connection:
            newest = connection.execute("SELECT coalesce(max(last), 0) FROM audit_archives").fetchone()
            if as_int(newest[0]) != archive.first - 1:
                return False
            connection.execute(
                "INSERT INTO audit_archives (first, last, chain, signature) VALUES (?, ?, ?, ?)",
                (archive.first, archive.last, archive.chain, archive.signature),
            )
            connection.execute(
                "DELETE FROM audit WHERE id <= ? AND record IS NOT NULL AND (command IN ('read', 'lost') OR"
                " (command IN ('run', 'code') AND NOT EXISTS (SELECT 1 FROM audit AS kept WHERE kept.run = audit.run"
                " AND kept.record IS NOT NULL AND (kept.command = 'write' OR kept.id > ?))))",
                (archive.last, archive.last),
            )
            return True


def _values(row: AuditRow) -> Sequence[object]:
    entry, seal = row.entry, row.seal
    line = str(entry.at), entry.actor, entry.command, entry.subject, entry.outcome.value, entry.detail
    return row.id, *line, row.run, row.record, *(astuple(seal) if seal else (None, None, None))


def _read_row(row: tuple[object, ...]) -> AuditRow:
    run, record, before, chain, signature = row[7:]
    seal = None
    if isinstance(before, bytes) and isinstance(chain, bytes):
        seal = AuditSeal(before, chain, signature if isinstance(signature, bytes) else None)
    return AuditRow(
        id=as_int(row[0]),
        entry=read_entry(tuple(map(str, row[1:7]))),
        run=None if run is None else str(run),
        record=None if record is None else str(record),
        seal=seal,
    )
