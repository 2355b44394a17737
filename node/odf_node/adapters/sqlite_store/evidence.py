"""Replay records and attestations."""

import sqlite3
from collections.abc import Iterator

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, get_dataset_key
from odf_node.ports.errors import BlockNotFoundError
from odf_node.ports.evidence import Attestation, ReplayRecord
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class EvidenceMethods:
    """The methods of ``MetadataStore`` about evidence."""

    _database: Database

    def find_replay_record(self, dataset_id: DatasetId, block_hash: Multihash) -> ReplayRecord | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT r.sequence_number, r.raw FROM replay_records r JOIN datasets d ON d.key = r.dataset"
                " JOIN blocks b ON b.dataset = r.dataset AND b.sequence_number = r.sequence_number"
                " WHERE d.id = ? AND b.hash = ?",
                (dataset_id.to_bytes(), block_hash.to_bytes()),
            ).fetchone()
            return None if row is None else ReplayRecord(dataset_id, as_int(row[0]), block_hash, as_bytes(row[1]))

    def put_replay_record(self, record: ReplayRecord) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            key = get_dataset_key(connection, record.dataset_id)
            known = connection.execute(
                "SELECT 1 FROM blocks WHERE dataset = ? AND sequence_number = ? AND hash = ?",
                (key, record.sequence_number, record.block_hash.to_bytes()),
            ).fetchone()
            if known is None:
                raise BlockNotFoundError(record.dataset_id, record.block_hash)
            connection.execute(
                "INSERT OR REPLACE INTO replay_records (dataset, sequence_number, raw) VALUES (?, ?, ?)",
                (key, record.sequence_number, record.raw),
            )

    def put_attestation(self, attestation: Attestation) -> bool:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            return insert_attestation(connection, attestation)

    def iter_attestations(self, dataset_id: DatasetId, *, sequence_number: int | None = None) -> Iterator[Attestation]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, first_sequence_number, last_sequence_number, last_block_hash, attester, raw, received_at"
                " FROM attestations WHERE dataset_id = ?1"
                " AND (?2 IS NULL OR ?2 BETWEEN first_sequence_number AND last_sequence_number) ORDER BY arrival",
                (dataset_id.to_bytes(), sequence_number),
            ).fetchall()
        return (_read_attestation(dataset_id, row) for row in rows)


def _read_attestation(dataset_id: DatasetId, row: tuple[object, ...]) -> Attestation:
    id_, first, last, last_hash, attester, raw, received_at = row
    return Attestation(
        id=Multihash.decode(as_bytes(id_)),
        dataset_id=dataset_id,
        first_sequence_number=as_int(first),
        last_sequence_number=as_int(last),
        last_block_hash=Multihash.decode(as_bytes(last_hash)),
        attester=DidKey.decode(as_bytes(attester)),
        raw=as_bytes(raw),
        received_at=Timestamp.parse(str(received_at)),
    )


def insert_attestation(connection: sqlite3.Connection, attestation: Attestation) -> bool:
    """Keep an attestation inside a transaction; say whether it is new."""
    cursor = connection.execute(
        "INSERT OR IGNORE INTO attestations (id, dataset_id, first_sequence_number, last_sequence_number,"
        " last_block_hash, attester, raw, received_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            attestation.id.to_bytes(),
            attestation.dataset_id.to_bytes(),
            attestation.first_sequence_number,
            attestation.last_sequence_number,
            attestation.last_block_hash.to_bytes(),
            attestation.attester.to_bytes(),
            attestation.raw,
            str(attestation.received_at),
        ),
    )
    return cursor.rowcount > 0
