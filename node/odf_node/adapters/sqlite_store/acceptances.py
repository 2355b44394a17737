"""Why chains were accepted."""

import sqlite3

from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, as_text
from odf_node.ports.commits import Acceptance
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
            acceptance.detail,
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
        detail=as_bytes(detail),
    )
