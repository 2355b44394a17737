"""Key events inside transactions: added with a compare of what was known."""

import sqlite3
from collections.abc import Iterable

from odf_node.adapters.sqlite_store.rows import as_int
from odf_node.ports.errors import KeyLogMovedError
from odf_node.ports.evidence import DocumentKind
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


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
