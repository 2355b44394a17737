"""Access tokens, and the audit log."""

import json
from collections.abc import Iterator

from odf_node.records.access import AccessToken
from odf_node.records.audit import AuditEntry, Outcome
from odf_node.store.database import StoreTables
from odf_node.store.rows import as_bytes, encode_time, read_time
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp

_TOKEN_COLUMNS = "id, secret_hash, label, scopes, created_at, expires_at, revoked_at"  # noqa: S105 - column names


class TokenTables(StoreTables):
    """Tokens that were given out."""

    def put_token(self, token: AccessToken) -> None:
        """Keep a new token; an id or secret hash that is known is a ``ValueError``."""
        with self._database.writing() as connection:
            # Secrets are never used twice, but a node that was granted something before keeps its key.
            connection.execute(
                "DELETE FROM access_tokens WHERE secret_hash = ? AND revoked_at IS NOT NULL", (token.secret_hash,)
            )
            known = connection.execute(
                "SELECT 1 FROM access_tokens WHERE id = ? OR secret_hash = ?", (token.id, token.secret_hash)
            ).fetchone()
            if known is not None:
                raise ValueError(f"token {token.id} is known")
            connection.execute(
                f"INSERT INTO access_tokens ({_TOKEN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
                (
                    token.id,
                    token.secret_hash,
                    token.label,
                    json.dumps(token.scopes),
                    str(token.created_at),
                    encode_time(token.expires_at),
                    encode_time(token.revoked_at),
                ),
            )

    def find_token(self, secret_hash: bytes) -> AccessToken | None:
        """Return the token with this secret, also when it is revoked or expired: the caller judges."""
        statement = f"SELECT {_TOKEN_COLUMNS} FROM access_tokens WHERE secret_hash = ?"  # noqa: S608 - a constant
        return self._find(_read_token, statement, secret_hash)

    def list_tokens(self) -> tuple[AccessToken, ...]:
        """Return all tokens, oldest first."""
        return self._list(_read_token, f"SELECT {_TOKEN_COLUMNS} FROM access_tokens ORDER BY arrival")  # noqa: S608 - a constant

    def revoke_token(self, token_id: str, revoked_at: Timestamp) -> bool:
        """Revoke a token; say whether there was one. The time of a first revocation stays."""
        statement = "UPDATE access_tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?"
        return self._write(statement, str(revoked_at), token_id) > 0


def _read_token(row: tuple[object, ...]) -> AccessToken:
    id_, secret_hash, label, scopes, created_at, expires_at, revoked_at = row
    return AccessToken(
        id=str(id_),
        secret_hash=as_bytes(secret_hash),
        label=str(label),
        scopes=tuple(json.loads(str(scopes))),
        created_at=Timestamp.parse(str(created_at)),
        expires_at=read_time(expires_at),
        revoked_at=read_time(revoked_at),
    )


class AuditTables(StoreTables):
    """What was done with this node, only ever appended to."""

    def append_audit(self, entry: AuditEntry) -> None:
        """Add a line to the audit log; lines are never changed or removed."""
        values = str(entry.at), entry.actor, entry.command, entry.subject, entry.outcome.value, entry.detail
        statement = "INSERT INTO audit (at, actor, command, subject, outcome, detail) VALUES (?, ?, ?, ?, ?, ?)"
        self._write(statement, *values)

    def iter_audit(self, *, limit: int) -> Iterator[AuditEntry]:
        """Yield the newest ``limit`` lines, newest first; records of reads and writes are none."""
        columns = "at, actor, command, subject, outcome, detail"
        statement = f"SELECT {columns} FROM audit WHERE record IS NULL ORDER BY id DESC LIMIT ?"  # noqa: S608 - constants
        return iter(self._list(read_entry, statement, limit))


def read_entry(row: tuple[str, ...]) -> AuditEntry:
    """Read the columns of a line."""
    at, actor, command, subject, outcome, detail = row
    return AuditEntry(
        at=Timestamp.parse(at),
        actor=actor,
        command=command,
        subject=subject,
        outcome=_read_outcome(outcome),
        detail=detail,
    )


def _read_outcome(text: str) -> Outcome:
    try:
        return Outcome(text)
    except ValueError as error:
        raise MalformedError("outcome", found=repr(text)) from error
