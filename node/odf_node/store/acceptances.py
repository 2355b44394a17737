"""Why chains were accepted, and the histories that others replaced: kept as they were (ACCEPT-10)."""

import json
import sqlite3

from odf_node.records.commits import Acceptance, Commit, Grounds
from odf_node.store.rows import as_bytes, as_int, as_text
from odf_protocol.errors import MalformedError
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp


def insert_acceptance(
    connection: sqlite3.Connection, key: int, acceptance: Acceptance, *, dataset_trust: Trust
) -> None:
    """Add an acceptance, and set what the dataset as a whole rests on."""
    connection.execute(
        "INSERT INTO acceptances (dataset, sequence_number, hash, trust, source_url, accepted_at, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            acceptance.head.sequence_number,
            acceptance.head.hash.to_bytes(),
            acceptance.trust.value,
            acceptance.source_url,
            str(acceptance.accepted_at),
            _encode_grounds(acceptance.grounds),
        ),
    )
    connection.execute("UPDATE datasets SET trust = ? WHERE key = ?", (dataset_trust.value, key))


def read_acceptance(row: tuple[object, ...]) -> Acceptance:
    """Make an acceptance of its columns."""
    number, hash_, trust, source_url, accepted_at, detail = row
    return Acceptance(
        head=Head(as_int(number), Multihash.decode(as_bytes(hash_))),
        trust=Trust(str(trust)),
        source_url=as_text(source_url),
        accepted_at=Timestamp.parse(str(accepted_at)),
        grounds=_decode_grounds(as_bytes(detail)),
    )


def _encode_grounds(grounds: Grounds) -> bytes:
    return json.dumps(grounds.to_json(), sort_keys=True, ensure_ascii=False).encode()


def _decode_grounds(raw: bytes) -> Grounds:
    try:
        found = json.loads(raw)
        first, last = found["blocks"]
        return Grounds(
            first=first,
            last=last,
            policy=found["policy"],
            rule=found["rule"],
            reason=found["reason"],
            auditors=tuple((auditor["name"], auditor["key"]) for auditor in found["auditors"]),
            replayed_steps=found["replayedSteps"],
            partial=found["partial"] or "",
            warnings=tuple(found["warnings"]),
            replaced=Multihash.parse(found["replaced"]) if found["replaced"] else None,
            not_checked=tuple(found["notChecked"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedError(
            "acceptances.detail", expected="the grounds of an acceptance", found=repr(error)
        ) from error


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
