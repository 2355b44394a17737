"""Histories that were replaced by others: kept as they were (ACCEPT-10)."""

import sqlite3

from odf_node.ports.commits import Commit
from odf_protocol.head import Head


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
