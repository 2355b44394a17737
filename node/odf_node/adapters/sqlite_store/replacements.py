"""Histories that were replaced by others: kept as they were (ACCEPT-10)."""

import sqlite3
from collections.abc import Iterator

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, get_dataset_key, read_block
from odf_node.ports.commits import Commit
from odf_node.ports.datasets import ReplacedHistory, StoredBlock
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class ReplacementMethods:
    """The methods of ``MetadataStore`` about replaced histories."""

    _database: Database

    def list_replaced_histories(self, dataset_id: DatasetId) -> tuple[ReplacedHistory, ...]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, replaced_at, source_url, after, head_sequence_number, head_hash, new_sequence_number,"
                " new_hash FROM replaced_histories WHERE dataset = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return tuple(
            ReplacedHistory(
                id=as_int(row[0]),
                replaced_at=Timestamp.parse(str(row[1])),
                source_url=None if row[2] is None else str(row[2]),
                after=as_int(row[3]),
                head=Head(as_int(row[4]), Multihash.decode(as_bytes(row[5]))),
                replaced_by=Head(as_int(row[6]), Multihash.decode(as_bytes(row[7]))),
            )
            for row in rows
        )

    def iter_replaced_blocks(self, history: ReplacedHistory) -> Iterator[StoredBlock]:
        """See ``MetadataStore``."""
        for number in range(history.after + 1, history.head.sequence_number + 1):
            with self._database.reading() as connection:
                row = connection.execute(
                    "SELECT sequence_number, hash, raw, signature FROM replaced_blocks"
                    " WHERE history = ? AND sequence_number = ?",
                    (history.id, number),
                ).fetchone()
            if row is None:
                return  # the dataset was deleted meanwhile
            yield read_block(row)


def move_aside(connection: sqlite3.Connection, key: int, old: Head, commit: Commit) -> None:
    """Move the blocks that a commit replaces out of the chain, inside its transaction."""
    assert commit.replaces_after is not None
    assert commit.acceptance is not None
    new = commit.new_head
    cursor = connection.execute(
        "INSERT INTO replaced_histories (dataset, replaced_at, source_url, after, head_sequence_number, head_hash,"
        " new_sequence_number, new_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            str(commit.acceptance.accepted_at),
            commit.acceptance.source_url,
            commit.replaces_after,
            old.sequence_number,
            old.hash.to_bytes(),
            new.sequence_number,
            new.hash.to_bytes(),
        ),
    )
    connection.execute(
        "INSERT INTO replaced_blocks (history, sequence_number, hash, raw, signature)"
        " SELECT ?, sequence_number, hash, raw, signature FROM blocks WHERE dataset = ? AND sequence_number > ?",
        (cursor.lastrowid, key, commit.replaces_after),
    )
    connection.execute("DELETE FROM blocks WHERE dataset = ? AND sequence_number > ?", (key, commit.replaces_after))
