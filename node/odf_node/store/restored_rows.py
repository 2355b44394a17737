"""Rows of a database from elsewhere: read as what they say they are before anything believes them.

Whoever could write the file of a backup could write any row of it: a dataset called ``../../name``, a chain that was
never checked, a token of his own. So each column is read by what reads it later, chains are judged by the rules again,
and what only this node's word stands behind is kept where the node's key signed the database, else left out.

Source: clauses HOME-43 and HOME-56 in ``spec/home.md``.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from odf_node.records.audit import Outcome
from odf_node.records.commits import role_of_traits
from odf_node.records.datasets import BlockRole, Origin
from odf_node.store.rows import as_bytes, as_int
from odf_protocol import block_traits as traits
from odf_protocol.block import decode_block
from odf_protocol.chain import Strictness
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetName
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp

_MAX_TEXT: Final = 64 * 1024  # guess: no name, URL or reason that this program writes is longer
_MAX_RECORD: Final = 1024 * 1024  # guess: a write from a thousand versions (AUDIT-4) has a third of it
_MAX_BYTES: Final = 64 * 1024 * 1024  # guess: no document that this program keeps is longer
_MAX_NUMBER: Final = (1 << 53) - 1
"""Behind the greatest number that SQLite has no row gets one, so nothing could be written. Source: CHAIN-6."""
_DIGEST_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_BATCH_ROWS: Final = 1_000
_REPLACED_BLOCKS: Final = (
    "SELECT raw FROM replaced_blocks JOIN replaced_histories h ON h.id = history WHERE h.dataset = ?"
)

Check = Callable[[Any], object]


def _flag(value: int) -> None:
    _require(value in {0, 1}, "0 or 1", value)


def _number(value: int) -> None:
    _require(0 <= value <= _MAX_NUMBER, f"a number from 0 to {_MAX_NUMBER}", value)


def _chain_place(value: int) -> None:
    _require(-1 <= value <= _MAX_NUMBER, "a block's number, or -1", value)


def _text(value: str) -> None:
    _require(len(value) <= _MAX_TEXT, f"at most {_MAX_TEXT:,} characters", len(value))


def _record(value: str) -> None:
    _require(len(value) <= _MAX_RECORD, f"at most {_MAX_RECORD:,} characters", len(value))


def _word(value: str) -> None:
    """A name or an address: one line, nothing that a terminal acts on."""
    _text(value)
    _require(value.isprintable(), "printable characters", ascii(value))


def _json(value: str | bytes) -> None:
    _require(len(value) <= _MAX_BYTES, f"at most {_MAX_BYTES:,} characters", len(value))
    json.loads(value)


def _document(value: bytes) -> None:
    """Proves itself: it is decoded, and its signature checked, each time it is used."""
    _require(0 < len(value) <= _MAX_BYTES, f"1 to {_MAX_BYTES:,} bytes", len(value))


def _bytes(value: bytes) -> None:
    _require(len(value) <= _MAX_BYTES, f"at most {_MAX_BYTES:,} bytes", len(value))


def _digest(value: bytes) -> None:
    _require(len(value) == _DIGEST_BYTES, f"{_DIGEST_BYTES} bytes", len(value))


def _signature(value: bytes) -> None:
    _require(len(value) == _SIGNATURE_BYTES, f"{_SIGNATURE_BYTES} bytes", len(value))


def _float(value: float) -> None:
    _require(0 <= value < float("inf"), "a number from 0", value)


def _require(is_right: bool, expected: str, found: object) -> None:
    if not is_right:
        raise ValueError(f"expected {expected}, found {found}")


COLUMNS: Final[Mapping[str, Mapping[str, Check]]] = {
    "datasets": {
        "key": _number, "id": DatasetId.decode, "name": DatasetName.parse, "kind": DatasetKind.__getitem__,
        "origin": Origin, "origin_url": _word, "trust": Trust, "pinned_key": DidKey.decode, "published": _flag,
        "created_at": Timestamp.parse, "head_sequence_number": _number, "head_hash": Multihash.decode,
        "chain_state": _bytes, "asked_name": DatasetName.parse,
    },
    "blocks": {
        "dataset": _number, "sequence_number": _number, "hash": Multihash.decode, "raw": _document, "signature": _bytes,
        "role": BlockRole,
    },
    "objects": {"dataset": _number, "hash": Multihash.decode, "absent": _flag, "brought": _flag},
    "signed_heads": {
        "id": _number, "dataset": _number, "sequence_number": _number, "hash": Multihash.decode, "raw": _document,
    },
    "acceptances": {
        "id": _number, "dataset": _number, "sequence_number": _number, "hash": Multihash.decode, "trust": Trust,
        "source_url": _word, "accepted_at": Timestamp.parse, "detail": _json,
    },
    "replay_records": {"dataset": _number, "sequence_number": _number, "raw": _document},
    "quarantine_files": {
        "id": _number, "dataset": _number, "sequence_number": _number, "object_hash": Multihash.decode,
        "row_count": _number, "source": _text, "created_at": Timestamp.parse, "push_source": _text,
        "resent_from": _text, "batch": _json, "batch_hash": Multihash.decode, "fate": _text,
    },
    "batch_sizes": {"dataset": _number, "push_source": _text, "row_count": _number},
    "ingest_keys": {
        "id": _number, "dataset": _number, "caller": _text, "key": _text, "asked": _bytes,
        "sequence_number": _chain_place, "answer": _json,
    },
    "ingest_stages": {"dataset": _number, "sequence_number": _number, "figures": _json},
    "stage_totals": {
        "stage": _word, "plug_in": _word, "batches": _number, "seconds": _float, "rows_in": _number,
        "rows_out": _number, "bad_rows": _number,
    },
    "fetched_places": {"dataset": _number, "state": _text, "place": _bytes},
    "quarantine_rows": {
        "entry": _number, "row": _number, "columns": _json, "fate": _text, "sequence_number": _number,
    },
    "merge_states": {"dataset": _number, "block_hash": Multihash.decode, "object_hash": Multihash.decode},
    "repositories": {"name": _word, "url": _word},
    "remotes": {"id": _number, "dataset": _number, "direction": _word, "url": _word},
    "replaced_histories": {
        "id": _number, "dataset": _number, "replaced_at": Timestamp.parse, "source_url": _word, "after": _chain_place,
        "head_sequence_number": _number, "head_hash": Multihash.decode, "new_sequence_number": _number,
        "new_hash": Multihash.decode,
    },
    "replaced_blocks": {
        "history": _number, "sequence_number": _number, "hash": Multihash.decode, "raw": _document,
        "signature": _bytes,
    },
    "attestations": {
        "arrival": _number, "id": Multihash.decode, "dataset_id": DatasetId.decode, "first_sequence_number": _number,
        "last_sequence_number": _number, "last_block_hash": Multihash.decode, "attester": DidKey.decode,
        "raw": _document, "received_at": Timestamp.parse,
    },
    "documents": {
        "arrival": _number, "id": Multihash.decode, "kind": _word, "dataset_id": DatasetId.decode, "raw": _document,
        "received_at": Timestamp.parse,
    },
    "seen_heads": {
        "dataset_id": DatasetId.decode, "sequence_number": _number, "block_hash": Multihash.decode, "raw": _document,
        "source": _text, "seen_at": Timestamp.parse,
    },
    "verified": {
        "dataset": _number, "sequence_number": _number, "hash": Multihash.decode, "replayed": _flag,
        "chain_state": _bytes, "verified_at": Timestamp.parse,
    },
    "peers": {"url": _word, "node_key": DidKey.decode, "first_seen": Timestamp.parse, "named": _flag},
    "peer_publisher_keys": {"id": _number, "peer": _word, "publisher_key": DidKey.decode},
    "peer_records": {"raw": _document},
    "gossip_items": {"arrival": _number, "id": Multihash.decode, "kind": _word, "raw": _document},
    "subscriptions": {
        "dataset_id": DatasetId.decode, "name": DatasetName.parse, "url": _word, "since": Timestamp.parse,
    },
    "access_tokens": {
        "arrival": _number, "id": _word, "secret_hash": _bytes, "label": _text, "scopes": _json,
        "created_at": Timestamp.parse, "expires_at": Timestamp.parse, "revoked_at": Timestamp.parse,
    },
    "audit": {
        "id": _number, "at": Timestamp.parse, "actor": _text, "command": _text, "subject": _text, "outcome": Outcome,
        "detail": _text, "run": _text, "record": _record, "before": _digest, "chain": _digest, "signature": _signature,
    },
    "audit_archives": {"first": _number, "last": _number, "chain": _digest, "signature": _signature},
}  # fmt: skip
"""What reads each column of each table; a column that may be empty is read where it is not."""

_OF_THIS_NODE_ALONE: Final = (
    # What others may do here, and whom this node asks.
    "access_tokens", "repositories", "remotes", "subscriptions", "peers", "peer_records", "gossip_items",
    # What it looked at, and why it took it; which rows of the audit log may be removed.
    "verified", "acceptances", "audit_archives",
    # Where an ingest goes on: a false place leaves rows out, a false state makes false corrections.
    "fetched_places", "merge_states", "ingest_keys", "batch_sizes", "ingest_stages", "stage_totals",
)  # fmt: skip


def check_rows(database: Path, origin: str) -> None:
    """Read every row as what it says it is, and judge every chain; states, roles and objects are those found here.

    Args:
        database: A file that nobody else uses, with the tables of this build.
        origin: How messages call it.

    Raises:
        MalformedError: A row is none that this program writes; table, column and reason are named.
    """
    with closing(sqlite3.connect(database)) as connection:
        for table, columns in COLUMNS.items():
            _check_table(connection, table, columns, origin)
        _require_next_numbers(connection, origin)
        _require_owners(connection, origin)
        _require_different_names(connection, origin)
        datasets = connection.execute(
            "SELECT key, id, name, kind, head_sequence_number, head_hash FROM datasets ORDER BY key"
        ).fetchall()
        for row in datasets:
            try:
                _judge_chain(connection, *row)
            except (OdfError, ValueError) as error:
                raise _malformed(origin, f"a chain that keeps the rules, for {row[2]}", str(error)) from error
        connection.commit()


def believe_nothing(database: Path) -> None:
    """Leave out what only this node's word stands behind: grants, trust, marks of progress, addresses.

    What proves itself stays: chains, rows, signed heads, key events, attestations, evidence; and what waits in
    quarantine, and the audit log.
    """
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        for table in _OF_THIS_NODE_ALONE:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
        connection.execute(
            "UPDATE datasets SET published = 0, trust = CASE origin WHEN ? THEN ? ELSE ? END",
            (Origin.OWN.value, Trust.OWN.value, Trust.METADATA.value),
        )
        connection.commit()


def _check_table(connection: sqlite3.Connection, table: str, columns: Mapping[str, Check], origin: str) -> None:
    statement = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - constants
    for row in connection.execute(statement):
        for (column, check), value in zip(columns.items(), row, strict=True):
            if value is None:
                continue
            try:
                check(value)
            except (OdfError, ValueError, KeyError, RecursionError) as error:
                expected = f"rows that this program writes in {table}.{column}"
                raise _malformed(origin, expected, str(error) or type(error).__name__) from error


def _require_next_numbers(connection: sqlite3.Connection, origin: str) -> None:
    """SQLite's notes of the numbers that rows got: by false ones the next row would have none, or an old row's."""
    numbered = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'").fetchall()
    notes = connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    noted = dict(notes)
    is_right = len(noted) == len(notes) and noted.keys() <= {name for (name,) in numbered}
    for (table,) in numbered:
        greatest = connection.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()[0]  # noqa: S608 - ours
        number = noted.get(table, 0)
        is_right = is_right and type(number) is int and greatest <= number <= _MAX_NUMBER
    if not is_right:
        raise _malformed(origin, "in sqlite_sequence the greatest number that rows of each table got", "others")


def _require_owners(connection: sqlite3.Connection, origin: str) -> None:
    """What is of no dataset would be of the next one that gets its number, and was never judged with it."""
    stray = connection.execute("PRAGMA foreign_key_check").fetchone()
    if stray is not None:
        raise _malformed(origin, f"rows of {stray[0]} that belong to a row of {stray[2]}", "one that belongs to none")


def _require_different_names(connection: sqlite3.Connection, origin: str) -> None:
    double = connection.execute("SELECT name FROM datasets GROUP BY lower(name) HAVING count(*) > 1 LIMIT 1").fetchone()
    if double is not None:
        raise _malformed(origin, "datasets of different names (NAME-3)", f"two called {double[0]}")


def _judge_chain(
    connection: sqlite3.Connection, key: int, raw_id: bytes, name: str, kind: str, number: int, head: bytes
) -> None:
    verifier, count = ChainVerifier(None, strictness=Strictness.FOREIGN), 0
    listed = {as_bytes(row[0]) for row in connection.execute("SELECT hash FROM objects WHERE dataset = ?", (key,))}
    strays = set(listed)
    for place, block_hash, raw, role in _iter_blocks(connection, key):
        found = verifier.take(raw)
        _require(place == count, f"block {count}", place)
        _require(Multihash.of_sha3_256(raw).to_bytes() == block_hash, f"the hash of block {place}", block_hash.hex())
        if role != (right := role_of_traits(found.traits)):
            raise ValueError(f"expected block {place} listed as {right.name.lower()}, found {role}")
        if found.traits & (traits.ROWS | traits.CHECKPOINT):
            parts = _objects_of(found.block.event)
            _require(parts <= listed, f"the objects of block {place}", "one that is not listed")
            strays -= parts
        count += 1
    state = verifier.state
    if state is None or (state.sequence_number, state.head.to_bytes()) != (number, head):
        raise ValueError(f"expected the chain to end with its head, block {number}, found {count} blocks")
    if (state.dataset_id.to_bytes(), state.kind) != (raw_id, DatasetKind[kind]):
        raise ValueError(f"expected the chain of {name}, found that of {state.dataset_id}")
    if strays:  # those of a history that was replaced stay for as long as the dataset does
        for (raw,) in connection.execute(_REPLACED_BLOCKS, (key,)):
            strays -= _objects_of(decode_block(as_bytes(raw), expected_hash=None).event)
    # What no block of the dataset names is another one's, or nobody's: it is not given out in this one's name (EX-80).
    connection.executemany("DELETE FROM objects WHERE dataset = ? AND hash = ?", [(key, each) for each in strays])
    connection.execute("UPDATE datasets SET chain_state = ? WHERE key = ?", (encode_state(state), key))


def _objects_of(event: object) -> set[bytes]:
    parts = (event.new_data, event.new_checkpoint) if isinstance(event, AddData | ExecuteTransform) else ()
    return {part.physical_hash.to_bytes() for part in parts if part is not None}


def _iter_blocks(connection: sqlite3.Connection, key: int) -> Iterator[tuple[int, bytes, bytes, int]]:
    rows = connection.execute(
        "SELECT sequence_number, hash, raw, role FROM blocks WHERE dataset = ? ORDER BY sequence_number", (key,)
    )
    while batch := rows.fetchmany(_BATCH_ROWS):
        for number, block_hash, raw, role in batch:
            yield as_int(number), as_bytes(block_hash), as_bytes(raw), as_int(role)


def _malformed(origin: str, expected: str, found: str) -> MalformedError:
    return MalformedError("backup", where=origin, expected=expected, found=found[:300])
