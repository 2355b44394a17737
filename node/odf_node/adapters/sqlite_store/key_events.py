"""Key events: kept like all documents that prove themselves, added with a compare of what was known."""

import sqlite3
from collections.abc import Iterable

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int
from odf_node.ports.errors import DatasetNotFoundError, HeadMovedError, KeyLogMovedError
from odf_node.ports.evidence import DocumentKind, KeyLogChange
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class KeyEventMethods:
    """The method of ``MetadataStore`` that changes a key log."""

    _database: Database

    def add_key_events(self, change: KeyLogChange) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            if change.expected_head is not None:
                _require_head(connection, change)
            require_key_events(connection, change.dataset_id, change.known)
            insert_key_events(connection, change.dataset_id, change.raws, change.received_at)
            if change.pinned_key is not None:
                connection.execute(
                    "UPDATE datasets SET pinned_key = ? WHERE id = ? AND pinned_key IS NOT NULL",
                    (change.pinned_key.to_bytes(), change.dataset_id.to_bytes()),
                )
            if change.forgets_seen_head:
                connection.execute("DELETE FROM seen_heads WHERE dataset_id = ?", (change.dataset_id.to_bytes(),))
            if change.signed_head is not None:
                connection.execute(
                    "INSERT INTO signed_heads (dataset, sequence_number, hash, raw)"
                    " SELECT key, head_sequence_number, head_hash, ? FROM datasets WHERE id = ?",
                    (change.signed_head, change.dataset_id.to_bytes()),
                )


def require_key_events(connection: sqlite3.Connection, dataset_id: DatasetId, known: int) -> None:
    """Check inside a transaction that a dataset has as many key events as somebody read before."""
    row = connection.execute(
        "SELECT count(*) FROM documents WHERE dataset_id = ? AND kind = ?",
        (dataset_id.to_bytes(), DocumentKind.KEY_EVENT.value),
    ).fetchone()
    if as_int(row[0]) != known:
        raise KeyLogMovedError(dataset_id, known, as_int(row[0]))


def insert_key_events(
    connection: sqlite3.Connection, dataset_id: DatasetId, raws: Iterable[bytes], received_at: Timestamp
) -> None:
    """Add events inside a transaction; one that is there stays."""
    connection.executemany(
        "INSERT OR IGNORE INTO documents (id, kind, dataset_id, raw, received_at) VALUES (?, ?, ?, ?, ?)",
        (
            (
                Multihash.of_sha3_256(raw).to_bytes(),
                DocumentKind.KEY_EVENT.value,
                dataset_id.to_bytes(),
                raw,
                str(received_at),
            )
            for raw in raws
        ),
    )


def _require_head(connection: sqlite3.Connection, change: KeyLogChange) -> None:
    row = connection.execute("SELECT head_hash FROM datasets WHERE id = ?", (change.dataset_id.to_bytes(),)).fetchone()
    if row is None:
        raise DatasetNotFoundError(change.dataset_id)
    found = Multihash.decode(as_bytes(row[0]))
    if found != change.expected_head:
        raise HeadMovedError(change.dataset_id, change.expected_head, found)
