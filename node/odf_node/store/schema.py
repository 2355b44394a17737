"""Tables of the home's database and the way from older versions to this one.

Source: clauses HOME-5 to HOME-7 in ``spec/home.md``, which describes every table.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from odf_node.store.migrations import AUDIT_1, add_records_of_accesses

APPLICATION_ID: Final = 0x4F44466E
"""``ODFn``: tells our databases from others' (SQLite file header, bytes 68-71)."""

SCHEMA_VERSION: Final = 2
"""Raised with every change of the tables from the first release on; each then has its step in ``MIGRATIONS``."""

_PRINT_BITS: Final = 20  # leaves 11 bits of SQLite's signed 32 for the version

_TABLES: Final = """
CREATE TABLE datasets (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_url TEXT,
    trust TEXT NOT NULL,
    pinned_key BLOB,
    published INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    head_sequence_number INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    chain_state BLOB NOT NULL,
    asked_name TEXT
) STRICT;
CREATE INDEX datasets_by_name_without_case ON datasets (name COLLATE NOCASE);
CREATE INDEX datasets_by_asked_name ON datasets (asked_name COLLATE NOCASE) WHERE asked_name IS NOT NULL;

CREATE TABLE blocks (
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    raw BLOB NOT NULL,
    signature BLOB,
    role INTEGER NOT NULL,
    PRIMARY KEY (dataset, sequence_number),
    UNIQUE (dataset, hash)
) STRICT;
CREATE INDEX blocks_by_role ON blocks (dataset, role, sequence_number);
CREATE INDEX blocks_with_rows ON blocks (dataset, sequence_number) WHERE role >= 3;

CREATE TABLE objects (
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    hash BLOB NOT NULL,
    absent INTEGER NOT NULL DEFAULT 0,
    brought INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (dataset, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX objects_by_hash ON objects (hash);
CREATE INDEX absent_objects ON objects (dataset, hash) WHERE absent = 1;

CREATE TABLE signed_heads (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    raw BLOB NOT NULL,
    UNIQUE (dataset, sequence_number, raw)
) STRICT;

CREATE TABLE acceptances (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    trust TEXT NOT NULL,
    source_url TEXT,
    accepted_at TEXT NOT NULL,
    detail BLOB NOT NULL
) STRICT;
CREATE INDEX acceptances_by_dataset ON acceptances (dataset);

CREATE TABLE replay_records (
    dataset INTEGER NOT NULL,
    sequence_number INTEGER NOT NULL,
    raw BLOB NOT NULL,
    PRIMARY KEY (dataset, sequence_number),
    FOREIGN KEY (dataset, sequence_number) REFERENCES blocks(dataset, sequence_number) ON DELETE CASCADE
) STRICT;

CREATE TABLE quarantine_files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    sequence_number INTEGER,
    object_hash BLOB NOT NULL,
    row_count INTEGER NOT NULL,
    source TEXT NOT NULL,
    created_at TEXT NOT NULL,
    push_source TEXT,
    resent_from TEXT NOT NULL,
    batch TEXT,
    batch_hash BLOB,
    fate TEXT
) STRICT;
CREATE INDEX quarantine_files_by_dataset ON quarantine_files (dataset);
CREATE INDEX waiting_batches ON quarantine_files (batch_hash) WHERE batch_hash IS NOT NULL;

CREATE TABLE batch_sizes (
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    push_source TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    PRIMARY KEY (dataset, push_source)
) STRICT, WITHOUT ROWID;

CREATE TABLE ingest_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    asked BLOB NOT NULL,
    sequence_number INTEGER NOT NULL,
    answer TEXT NOT NULL,
    UNIQUE (dataset, caller, key)
) STRICT;
CREATE INDEX ingest_keys_by_age ON ingest_keys (dataset, caller, id);

CREATE TABLE ingest_stages (
    dataset INTEGER NOT NULL,
    sequence_number INTEGER NOT NULL,
    figures TEXT NOT NULL,
    PRIMARY KEY (dataset, sequence_number),
    FOREIGN KEY (dataset, sequence_number) REFERENCES blocks(dataset, sequence_number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE stage_totals (
    stage TEXT NOT NULL,
    plug_in TEXT NOT NULL,
    batches INTEGER NOT NULL,
    seconds REAL NOT NULL,
    rows_in INTEGER NOT NULL,
    rows_out INTEGER NOT NULL,
    bad_rows INTEGER NOT NULL,
    PRIMARY KEY (stage, plug_in)
) STRICT, WITHOUT ROWID;

CREATE TABLE fetched_places (
    dataset INTEGER PRIMARY KEY REFERENCES datasets(key) ON DELETE CASCADE,
    state TEXT NOT NULL,
    place BLOB NOT NULL
) STRICT;

CREATE TABLE quarantine_rows (
    entry INTEGER NOT NULL REFERENCES quarantine_files(id) ON DELETE CASCADE,
    row INTEGER NOT NULL,
    columns TEXT,
    fate TEXT,
    sequence_number INTEGER,
    PRIMARY KEY (entry, row)
) STRICT, WITHOUT ROWID;

CREATE TABLE merge_states (
    dataset INTEGER PRIMARY KEY REFERENCES datasets(key) ON DELETE CASCADE,
    block_hash BLOB NOT NULL,
    object_hash BLOB NOT NULL
) STRICT;

CREATE TABLE repositories (
    name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,
    url TEXT NOT NULL
) STRICT;

CREATE TABLE remotes (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    direction TEXT NOT NULL,
    url TEXT NOT NULL,
    UNIQUE (dataset, direction, url)
) STRICT;

CREATE TABLE replaced_histories (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL REFERENCES datasets(key) ON DELETE CASCADE,
    replaced_at TEXT NOT NULL,
    source_url TEXT,
    after INTEGER NOT NULL,
    head_sequence_number INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    new_sequence_number INTEGER NOT NULL,
    new_hash BLOB NOT NULL
) STRICT;

CREATE TABLE replaced_blocks (
    history INTEGER NOT NULL REFERENCES replaced_histories(id) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    raw BLOB NOT NULL,
    signature BLOB,
    PRIMARY KEY (history, sequence_number)
) STRICT;

CREATE TABLE attestations (
    arrival INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    dataset_id BLOB NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number INTEGER NOT NULL,
    last_block_hash BLOB NOT NULL,
    attester BLOB NOT NULL,
    raw BLOB NOT NULL,
    received_at TEXT NOT NULL
) STRICT;
CREATE INDEX attestations_by_dataset ON attestations (dataset_id);

CREATE TABLE documents (
    arrival INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    dataset_id BLOB NOT NULL,
    raw BLOB NOT NULL,
    received_at TEXT NOT NULL
) STRICT;
CREATE INDEX documents_by_dataset ON documents (dataset_id, kind);

CREATE TABLE seen_heads (
    dataset_id BLOB NOT NULL PRIMARY KEY,
    sequence_number INTEGER NOT NULL,
    block_hash BLOB NOT NULL,
    raw BLOB NOT NULL,
    source TEXT NOT NULL,
    seen_at TEXT NOT NULL
) STRICT;

CREATE TABLE verified (
    dataset INTEGER PRIMARY KEY REFERENCES datasets(key) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    replayed INTEGER NOT NULL,
    chain_state BLOB NOT NULL,
    verified_at TEXT NOT NULL
) STRICT;

CREATE TABLE peers (
    url TEXT NOT NULL PRIMARY KEY,
    node_key BLOB,
    first_seen TEXT NOT NULL,
    named INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE peer_publisher_keys (
    id INTEGER PRIMARY KEY,
    peer TEXT NOT NULL REFERENCES peers(url) ON DELETE CASCADE,
    publisher_key BLOB NOT NULL,
    UNIQUE (peer, publisher_key)
) STRICT;

CREATE TABLE peer_records (
    raw BLOB NOT NULL PRIMARY KEY
) STRICT;

CREATE TABLE gossip_items (
    arrival INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    raw BLOB NOT NULL
) STRICT;

CREATE TABLE subscriptions (
    dataset_id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT,
    since TEXT NOT NULL
) STRICT;

CREATE TABLE access_tokens (
    arrival INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    secret_hash BLOB NOT NULL UNIQUE,
    label TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT
) STRICT;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    command TEXT NOT NULL,
    subject TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    run TEXT,
    record TEXT,
    before BLOB,
    chain BLOB,
    signature BLOB
) STRICT;
CREATE INDEX audit_records_by_subject ON audit (subject, id) WHERE record IS NOT NULL;
CREATE INDEX audit_records_by_run ON audit (run, id) WHERE record IS NOT NULL;
CREATE INDEX audit_reads ON audit (id) WHERE command = 'read' AND record IS NOT NULL;
CREATE INDEX audit_seals ON audit (id) WHERE chain IS NOT NULL;

CREATE TABLE audit_archives (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    chain BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT;

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only appended to'); END;
CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
WHEN OLD.record IS NULL OR OLD.command = 'write' OR OLD.id > coalesce((SELECT max(last) FROM audit_archives), 0)
BEGIN SELECT RAISE(ABORT, 'the audit log is only appended to'); END;
"""

_AUDIT_BEGINS: Final = "CREATE TABLE audit ("
_TABLES_1: Final = _TABLES[: _TABLES.index(_AUDIT_BEGINS)] + AUDIT_1


def _stamp_of(version: int, tables: str) -> int:
    return version << _PRINT_BITS | int.from_bytes(hashlib.sha3_256(tables.encode()).digest()[:4]) >> 12


STAMP: Final = _stamp_of(SCHEMA_VERSION, _TABLES)
"""``user_version`` of our databases: the version, and 20 bits of a hash of the tables.

Builds between releases change tables without a new version; what they left is told from ours by the hash (HOME-6).
"""
_SCRIPTS: Final = {_stamp_of(1, _TABLES_1): _TABLES_1, STAMP: _TABLES}
"""Tables by stamp: ours, and those that migrations begin with. Of other builds between releases nothing is known."""


MIGRATIONS: Final[Mapping[int, Callable[[sqlite3.Connection], None]]] = {
    1: partial(add_records_of_accesses, tables=_TABLES[_TABLES.index(_AUDIT_BEGINS) :])
}
"""By version: the step from it to the next one. Runs inside a transaction and must not commit."""


def version_of(stamp: int) -> int:
    """Return the schema version that a ``user_version`` states."""
    return stamp >> _PRINT_BITS


def describe_stamp(stamp: int) -> str:
    """Write a ``user_version`` for people: ``1-3fa2c``."""
    return f"{version_of(stamp)}-{stamp & (1 << _PRINT_BITS) - 1:05x}"


def create_tables(connection: sqlite3.Connection, stamp: int = STAMP) -> None:
    """Make all tables in an empty database and mark it as ours; ``stamp`` is that of known tables."""
    connection.executescript(f"BEGIN IMMEDIATE; {_SCRIPTS[stamp]}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {stamp}")
    connection.execute("COMMIT")


def read_version(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return application id and the stamp of the tables."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (stamp,) = connection.execute("PRAGMA user_version").fetchone()
    return application_id, stamp


def is_known(stamp: int) -> bool:
    """Say whether the tables of a stamp are ours, or those that a migration begins with."""
    return stamp in _SCRIPTS


def can_migrate(stamp: int, migrations: Mapping[int, Callable[[sqlite3.Connection], None]] = MIGRATIONS) -> bool:
    """Say whether there is a step from every version between this one and ours."""
    return (
        is_known(stamp)
        and stamp != STAMP
        and all(version in migrations for version in range(version_of(stamp), SCHEMA_VERSION))
    )


def migrate(
    connection: sqlite3.Connection,
    migrations: Mapping[int, Callable[[sqlite3.Connection], None]] = MIGRATIONS,
    target: int = STAMP,
) -> None:
    """Bring an older database to ``target``, all steps in one transaction; another process may have done so already."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        _, stamp = read_version(connection)
        for version in range(version_of(stamp), version_of(target)):
            migrations[version](connection)
        connection.execute(f"PRAGMA user_version = {target}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
