"""Signed documents about datasets, in order of arrival; key events are added with a compare of what was known."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from odf_node.records.datasets import HeldHead
from odf_node.records.errors import BlockNotFoundError, DatasetNotFoundError, HeadMovedError, KeyLogMovedError
from odf_node.records.evidence import DocumentKind, EvidenceDocument, KeyLogChange, SeenHead
from odf_node.store.database import StoreTables
from odf_node.store.rows import as_bytes, as_int, get_dataset_key
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class DocumentTables(StoreTables):
    """Signed heads of datasets that are here; of any: key events, proofs, settlements, and the newest head met."""

    def find_signed_head(self, dataset_id: DatasetId) -> HeldHead | None:
        """Return the document that vouches for the present head, or None when there is none."""
        return self._find(
            lambda row: _read_signed_head(dataset_id, row),
            "SELECT s.sequence_number, s.hash, s.raw FROM signed_heads s JOIN datasets d"
            " ON d.key = s.dataset AND d.head_hash = s.hash WHERE d.id = ? ORDER BY s.id DESC LIMIT 1",
            dataset_id.to_bytes(),
        )

    def iter_signed_heads(self, dataset_id: DatasetId) -> Iterator[HeldHead]:
        """Yield every signed head ever committed or added for the dataset, by sequence number."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT sequence_number, hash, raw FROM signed_heads WHERE dataset = ? ORDER BY sequence_number, id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return (_read_signed_head(dataset_id, row) for row in rows)

    def put_signed_head(self, signed_head: HeldHead, *, known_key_events: int | None = None) -> None:
        """Keep a document about a block of the chain; a different document for the same block stays beside it.

        Args:
            signed_head: What is kept.
            known_key_events: How many key events its signer, or who checked it, knew; None: whatever there are.

        Raises:
            BlockNotFoundError: The chain has no such block.
            KeyLogMovedError: There are others by now.
        """
        head = signed_head.head
        with self._database.writing() as connection:
            key = get_dataset_key(connection, signed_head.dataset_id)
            if known_key_events is not None:
                require_key_events(connection, signed_head.dataset_id, known_key_events)
            known = connection.execute(
                "SELECT 1 FROM blocks WHERE dataset = ? AND sequence_number = ? AND hash = ?",
                (key, head.sequence_number, head.hash.to_bytes()),
            ).fetchone()
            if known is None:
                raise BlockNotFoundError(signed_head.dataset_id, head.hash)
            connection.execute(
                "INSERT OR IGNORE INTO signed_heads (dataset, sequence_number, hash, raw) VALUES (?, ?, ?, ?)",
                (key, head.sequence_number, head.hash.to_bytes(), signed_head.raw),
            )

    def list_head_documents(self) -> dict[DatasetId, int]:
        """Return for each dataset with a signed head a number that changes when another document counts."""
        return dict(
            self._list(
                lambda row: (DatasetId.decode(row[0]), as_int(row[1])),
                "SELECT d.id, max(s.id) FROM datasets d JOIN signed_heads s"
                " ON s.dataset = d.key AND s.sequence_number = d.head_sequence_number AND s.hash = d.head_hash"
                " GROUP BY d.key",
            )
        )

    def put_seen_head(self, head: SeenHead) -> bool:
        """Remember a head if it is newer than the one remembered; say whether it was."""
        changed = self._write(
            "INSERT INTO seen_heads (dataset_id, sequence_number, block_hash, raw, source, seen_at)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (dataset_id) DO UPDATE SET"
            " sequence_number = excluded.sequence_number, block_hash = excluded.block_hash, raw = excluded.raw,"
            " source = excluded.source, seen_at = excluded.seen_at"
            " WHERE excluded.sequence_number > seen_heads.sequence_number",
            head.dataset_id.to_bytes(),
            head.sequence_number,
            head.block_hash.to_bytes(),
            head.raw,
            head.source,
            str(head.seen_at),
        )
        return changed > 0

    def find_seen_head(self, dataset_id: DatasetId) -> SeenHead | None:
        """Return the newest head that was ever met for a dataset, or None."""

        def read(row: tuple[Any, ...]) -> SeenHead:
            number, block_hash, raw, source, seen_at = row
            return SeenHead(
                dataset_id=dataset_id,
                sequence_number=number,
                block_hash=Multihash.decode(block_hash),
                raw=raw,
                source=source,
                seen_at=Timestamp.parse(seen_at),
            )

        statement = "SELECT sequence_number, block_hash, raw, source, seen_at FROM seen_heads WHERE dataset_id = ?"
        return self._find(read, statement, dataset_id.to_bytes())

    def list_seen_heads(self) -> dict[DatasetId, int]:
        """Return for each dataset with a head that was ever met the number of its block."""
        statement = "SELECT dataset_id, sequence_number FROM seen_heads"
        return dict(self._list(lambda row: (DatasetId.decode(row[0]), as_int(row[1])), statement))

    def put_document(self, document: EvidenceDocument) -> bool:
        """Keep a document that proves itself; say whether it is new. It stays when the dataset is deleted."""
        changed = self._write(
            "INSERT OR IGNORE INTO documents (id, kind, dataset_id, raw, received_at) VALUES (?, ?, ?, ?, ?)",
            Multihash.of_sha3_256(document.raw).to_bytes(),
            document.kind.value,
            document.dataset_id.to_bytes(),
            document.raw,
            str(document.received_at),
        )
        return changed > 0

    def iter_documents(self, dataset_id: DatasetId, kind: DocumentKind) -> Iterator[EvidenceDocument]:
        """Yield documents of a kind about a dataset, in order of arrival."""
        return iter(
            self._list(
                lambda row: EvidenceDocument(kind, dataset_id, row[0], Timestamp.parse(row[1])),
                "SELECT raw, received_at FROM documents WHERE dataset_id = ? AND kind = ? ORDER BY arrival",
                dataset_id.to_bytes(),
                kind.value,
            )
        )

    def list_subjects(self, kind: DocumentKind) -> frozenset[DatasetId]:
        """Return the datasets for which ``iter_documents`` yields something."""
        statement = "SELECT DISTINCT dataset_id FROM documents WHERE kind = ?"
        return frozenset(self._list(lambda row: DatasetId.decode(row[0]), statement, kind.value))

    def add_key_events(self, change: KeyLogChange) -> None:
        """Add key events to those of a dataset, in one step with what goes with them; like documents they stay.

        Raises:
            KeyLogMovedError: Other events were added since ``change.known`` were read; nothing was written.
            HeadMovedError: The chain's head is not ``change.expected_head``; nothing was written.
        """
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


def _read_signed_head(dataset_id: DatasetId, row: tuple[object, ...]) -> HeldHead:
    head = Head(as_int(row[0]), Multihash.decode(as_bytes(row[1])))
    return HeldHead(dataset_id, head, as_bytes(row[2]))


def _require_head(connection: sqlite3.Connection, change: KeyLogChange) -> None:
    row = connection.execute("SELECT head_hash FROM datasets WHERE id = ?", (change.dataset_id.to_bytes(),)).fetchone()
    if row is None:
        raise DatasetNotFoundError(change.dataset_id)
    found = Multihash.decode(as_bytes(row[0]))
    if found != change.expected_head:
        raise HeadMovedError(change.dataset_id, change.expected_head, found)


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
