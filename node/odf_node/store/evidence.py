"""Step records, attestations, and how far datasets were verified."""

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from odf_node.records.evidence import HeldAttestation, HeldStepRecord, Verified
from odf_node.store.database import StoreTables
from odf_node.store.rows import as_bytes, as_int, get_dataset_key
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

# Records may have megabytes: a page bounds what is in memory, and how long a snapshot is held.
_PAGE_RECORDS: Final = 64


class EvidenceTables(StoreTables):
    """Step records, attestations, and how far this node verified."""

    def find_step_record(self, dataset_id: DatasetId, block_hash: Multihash) -> HeldStepRecord | None:
        """Return the step record of an ExecuteTransform block, or None when it came without."""
        return self._find(
            lambda row: HeldStepRecord(dataset_id, row[0], block_hash, row[1]),
            "SELECT r.sequence_number, r.raw FROM replay_records r JOIN datasets d ON d.key = r.dataset"
            " JOIN blocks b ON b.dataset = r.dataset AND b.sequence_number = r.sequence_number"
            " WHERE d.id = ? AND b.hash = ?",
            dataset_id.to_bytes(),
            block_hash.to_bytes(),
        )

    def iter_step_records(self, dataset_id: DatasetId, *, after: int, upto: int) -> Iterator[tuple[int, bytes]]:
        """Yield sequence number and step record of blocks above ``after`` and not above ``upto``, in order."""
        last = after
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(
                    "SELECT r.sequence_number, r.raw FROM replay_records r JOIN datasets d ON d.key = r.dataset"
                    " WHERE d.id = ? AND r.sequence_number > ? AND r.sequence_number <= ?"
                    " ORDER BY r.sequence_number LIMIT ?",
                    (dataset_id.to_bytes(), last, upto, _PAGE_RECORDS),
                ).fetchall()
            for number, raw in rows:
                last = as_int(number)
                yield last, as_bytes(raw)
            if len(rows) < _PAGE_RECORDS:
                return

    def put_attestation(self, attestation: HeldAttestation) -> bool:
        """Keep an attestation; say whether it is new."""
        with self._database.writing() as connection:
            return insert_attestation(connection, attestation)

    def iter_attestations(self, dataset_id: DatasetId) -> Iterator[HeldAttestation]:
        """Yield attestations about the dataset, in order of arrival."""
        return iter(
            self._list(
                lambda row: _read_attestation(dataset_id, row),
                "SELECT id, first_sequence_number, last_sequence_number, last_block_hash, attester, raw, received_at"
                " FROM attestations WHERE dataset_id = ? ORDER BY arrival",
                dataset_id.to_bytes(),
            )
        )

    def list_attestations_after(self, arrival: int, *, limit: int) -> tuple[tuple[int, bytes], ...]:
        """Return attestations that arrived after a place, with their places, oldest first."""
        statement = "SELECT arrival, raw FROM attestations WHERE arrival > ? ORDER BY arrival LIMIT ?"
        return self._list(lambda row: (as_int(row[0]), as_bytes(row[1])), statement, arrival, limit)

    def put_verified(self, verified: Verified) -> None:
        """Remember how far a dataset was verified, instead of what was remembered before."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO verified (dataset, sequence_number, hash, replayed, chain_state, verified_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    get_dataset_key(connection, verified.dataset_id),
                    verified.head.sequence_number,
                    verified.head.hash.to_bytes(),
                    int(verified.replayed),
                    verified.chain_state,
                    str(verified.verified_at),
                ),
            )

    def find_verified(self, dataset_id: DatasetId) -> Verified | None:
        """Return how far a dataset was verified, or None."""

        def read(row: tuple[Any, ...]) -> Verified:
            number, block_hash, replayed, state, at = row
            head = Head(number, Multihash.decode(block_hash))
            return Verified(dataset_id, head, bool(replayed), state, Timestamp.parse(at))

        return self._find(
            read,
            "SELECT v.sequence_number, v.hash, v.replayed, v.chain_state, v.verified_at FROM verified v"
            " JOIN datasets d ON d.key = v.dataset WHERE d.id = ?",
            dataset_id.to_bytes(),
        )


def _read_attestation(dataset_id: DatasetId, row: tuple[Any, ...]) -> HeldAttestation:
    id_, first, last, last_hash, attester, raw, received_at = row
    return HeldAttestation(
        id=Multihash.decode(id_),
        dataset_id=dataset_id,
        first_sequence_number=first,
        last_sequence_number=last,
        last_block_hash=Multihash.decode(last_hash),
        attester=DidKey.decode(attester),
        raw=raw,
        received_at=Timestamp.parse(received_at),
    )


def insert_attestation(connection: sqlite3.Connection, attestation: HeldAttestation) -> bool:
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
