"""The audit log."""

from collections.abc import Iterator

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.ports.audit import AuditEntry, Outcome
from odf_protocol.timestamp import Timestamp


class SqliteAuditLog(SqlitePort):
    """``AuditLog`` on SQLite."""

    def append_audit(self, entry: AuditEntry) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO audit (at, actor, command, subject, outcome, detail) VALUES (?, ?, ?, ?, ?, ?)",
                (str(entry.at), entry.actor, entry.command, entry.subject, entry.outcome.value, entry.detail),
            )

    def iter_audit(self, *, limit: int) -> Iterator[AuditEntry]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT at, actor, command, subject, outcome, detail FROM audit ORDER BY id DESC LIMIT ?", (limit,)
            ).fetchall()
        return (_read_entry(row) for row in rows)


def _read_entry(row: tuple[object, ...]) -> AuditEntry:
    at, actor, command, subject, outcome, detail = (str(column) for column in row)
    return AuditEntry(
        at=Timestamp.parse(at),
        actor=actor,
        command=command,
        subject=subject,
        outcome=Outcome(outcome),
        detail=detail,
    )
