"""Documents that prove themselves, the newest heads that were met, and how far datasets were verified."""

from collections.abc import Iterator

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, get_dataset_key
from odf_node.ports.evidence import DocumentKind, EvidenceDocument, SeenHead, Verified
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class DisputeMethods:
    """The methods of ``MetadataStore`` about disputes and freshness."""

    _database: Database

    def put_document(self, document: EvidenceDocument) -> bool:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            cursor = connection.execute(
                "INSERT OR IGNORE INTO documents (id, kind, dataset_id, raw, received_at) VALUES (?, ?, ?, ?, ?)",
                (
                    Multihash.of_sha3_256(document.raw).to_bytes(),
                    document.kind.value,
                    document.dataset_id.to_bytes(),
                    document.raw,
                    str(document.received_at),
                ),
            )
            return cursor.rowcount > 0

    def iter_documents(self, dataset_id: DatasetId, kind: DocumentKind) -> Iterator[EvidenceDocument]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT raw, received_at FROM documents WHERE dataset_id = ? AND kind = ? ORDER BY arrival",
                (dataset_id.to_bytes(), kind.value),
            ).fetchall()
        return (EvidenceDocument(kind, dataset_id, as_bytes(raw), Timestamp.parse(str(at))) for raw, at in rows)

    def put_seen_head(self, head: SeenHead) -> bool:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            cursor = connection.execute(
                "INSERT INTO seen_heads (dataset_id, sequence_number, block_hash, raw, source, seen_at)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (dataset_id) DO UPDATE SET"
                " sequence_number = excluded.sequence_number, block_hash = excluded.block_hash, raw = excluded.raw,"
                " source = excluded.source, seen_at = excluded.seen_at"
                " WHERE excluded.sequence_number > seen_heads.sequence_number",
                (
                    head.dataset_id.to_bytes(),
                    head.sequence_number,
                    head.block_hash.to_bytes(),
                    head.raw,
                    head.source,
                    str(head.seen_at),
                ),
            )
            return cursor.rowcount > 0

    def find_seen_head(self, dataset_id: DatasetId) -> SeenHead | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT sequence_number, block_hash, raw, source, seen_at FROM seen_heads WHERE dataset_id = ?",
                (dataset_id.to_bytes(),),
            ).fetchone()
        if row is None:
            return None
        number, block_hash, raw, source, seen_at = row
        return SeenHead(
            dataset_id=dataset_id,
            sequence_number=as_int(number),
            block_hash=Multihash.decode(as_bytes(block_hash)),
            raw=as_bytes(raw),
            source=str(source),
            seen_at=Timestamp.parse(str(seen_at)),
        )

    def put_verified(self, verified: Verified) -> None:
        """See ``MetadataStore``."""
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
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT v.sequence_number, v.hash, v.replayed, v.chain_state, v.verified_at FROM verified v"
                " JOIN datasets d ON d.key = v.dataset WHERE d.id = ?",
                (dataset_id.to_bytes(),),
            ).fetchone()
        if row is None:
            return None
        number, block_hash, replayed, state, at = row
        head = Head(as_int(number), Multihash.decode(as_bytes(block_hash)))
        return Verified(dataset_id, head, bool(replayed), as_bytes(state), Timestamp.parse(str(at)))
