"""Why chains were accepted, and who signed their heads."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.evidence import insert_attestation
from odf_node.adapters.sqlite_store.object_names import note_present
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, as_text, get_dataset_key
from odf_node.ports.commits import Acceptance
from odf_node.ports.datasets import SignedHead
from odf_node.ports.errors import BlockNotFoundError, HeadMovedError
from odf_node.ports.evidence import Attestation
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp


class AcceptanceMethods:
    """The methods of ``MetadataStore`` about acceptances and signed heads."""

    _database: Database

    def find_signed_head(self, dataset_id: DatasetId) -> SignedHead | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT s.sequence_number, s.hash, s.raw FROM signed_heads s JOIN datasets d"
                " ON d.key = s.dataset AND d.head_hash = s.hash WHERE d.id = ? ORDER BY s.id DESC LIMIT 1",
                (dataset_id.to_bytes(),),
            ).fetchone()
            return None if row is None else _read_signed_head(dataset_id, row)

    def iter_signed_heads(self, dataset_id: DatasetId) -> Iterator[SignedHead]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT sequence_number, hash, raw FROM signed_heads WHERE dataset = ? ORDER BY sequence_number, id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return (_read_signed_head(dataset_id, row) for row in rows)

    def put_signed_head(self, signed_head: SignedHead) -> None:
        """See ``MetadataStore``."""
        head = signed_head.head
        with self._database.writing() as connection:
            key = get_dataset_key(connection, signed_head.dataset_id)
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

    def put_acceptance(
        self,
        dataset_id: DatasetId,
        acceptance: Acceptance,
        *,
        rests_on: Trust | None = None,
        attestations: Sequence[Attestation] = (),
        present: Iterable[Multihash] = (),
    ) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            row = connection.execute("SELECT head_hash FROM datasets WHERE key = ?", (key,)).fetchone()
            found = Multihash.decode(as_bytes(row[0]))
            if found != acceptance.head.hash:
                raise HeadMovedError(dataset_id, acceptance.head.hash, found)
            insert_acceptance(connection, key, acceptance, dataset_trust=rests_on or acceptance.trust)
            for attestation in attestations:
                insert_attestation(connection, attestation)
            note_present(connection, key, present)

    def iter_acceptances(self, dataset_id: DatasetId) -> Iterator[Acceptance]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT sequence_number, hash, trust, source_url, accepted_at, detail FROM acceptances"
                " WHERE dataset = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return (_read_acceptance(row) for row in rows)


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


def _read_signed_head(dataset_id: DatasetId, row: tuple[object, ...]) -> SignedHead:
    head = Head(as_int(row[0]), Multihash.decode(as_bytes(row[1])))
    return SignedHead(dataset_id, head, as_bytes(row[2]))


def _read_acceptance(row: tuple[object, ...]) -> Acceptance:
    number, hash_, trust, source_url, accepted_at, detail = row
    return Acceptance(
        head=Head(as_int(number), Multihash.decode(as_bytes(hash_))),
        trust=Trust(str(trust)),
        source_url=as_text(source_url),
        accepted_at=Timestamp.parse(str(accepted_at)),
        detail=as_bytes(detail),
    )
