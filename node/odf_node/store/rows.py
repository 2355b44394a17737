"""Values as columns and back: multihashes and identities as bytes, times as text that sorts nothing."""

import sqlite3
from typing import Final

from odf_node.records.datasets import DatasetRecord, Origin, StoredBlock
from odf_node.records.errors import DatasetNotFoundError
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.head import Head
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp

_SHA3_256_PREFIX: Final = Multihash.of_sha3_256(b"").to_bytes()[:2]

DATASET_COLUMNS: Final = (
    "id, name, kind, head_sequence_number, head_hash, origin, origin_url, trust, pinned_key, published, created_at"
)


def read_dataset(row: tuple[object, ...]) -> DatasetRecord:
    """Make a record of the columns in ``DATASET_COLUMNS``."""
    id_, name, kind, number, head_hash, origin, origin_url, trust, pinned_key, published, created_at = row
    return DatasetRecord(
        id=DatasetId.decode(as_bytes(id_)),
        name=str(name),
        kind=DatasetKind[str(kind)],
        head=Head(as_int(number), Multihash.decode(as_bytes(head_hash))),
        origin=Origin(str(origin)),
        origin_url=as_text(origin_url),
        trust=Trust(str(trust)),
        pinned_key=None if pinned_key is None else DidKey.decode(as_bytes(pinned_key)),
        published=bool(published),
        created_at=Timestamp.parse(str(created_at)),
    )


def read_block(row: tuple[int, bytes, bytes, bytes | None]) -> StoredBlock:
    """Make a block of the columns sequence_number, hash, raw, signature. Called for every block of long chains."""
    number, encoded, raw, signature = row
    if encoded[:2] == _SHA3_256_PREFIX:
        return StoredBlock(number, Multihash(SHA3_256, encoded[2:]), raw, signature)
    return StoredBlock(number, Multihash.decode(encoded), raw, signature)


def get_dataset_key(connection: sqlite3.Connection, dataset_id: DatasetId) -> int:
    """Return the number under which other tables know the dataset.

    Raises:
        DatasetNotFoundError: It is not here.
    """
    row = connection.execute("SELECT key FROM datasets WHERE id = ?", (dataset_id.to_bytes(),)).fetchone()
    if row is None:
        raise DatasetNotFoundError(dataset_id)
    return as_int(row[0])


def encode_time(time: Timestamp | None) -> str | None:
    """Write an optional time."""
    return None if time is None else str(time)


def read_time(column: object) -> Timestamp | None:
    """Read an optional time."""
    return None if column is None else Timestamp.parse(str(column))


def as_bytes(column: object) -> bytes:
    """Narrow the type of a column; tables are STRICT."""
    assert isinstance(column, bytes)
    return column


def as_int(column: object) -> int:
    """Narrow the type of a column; tables are STRICT."""
    assert isinstance(column, int)
    return column


def as_text(column: object) -> str | None:
    """Narrow the type of a column that may be empty; tables are STRICT."""
    assert column is None or isinstance(column, str)
    return column
