"""Any Parquet file, described as the protocol sees it."""

from hashlib import sha3_256
from pathlib import Path
from typing import Any, Final

from odf_node.services.slices import logical_hash_of, open_slice
from odf_protocol.errors import UnsupportedError
from odf_protocol.multihash import SHA3_256, Multihash

CHUNK_BYTES: Final = 1 << 20


def describe_data_file(path: Path) -> dict[str, Any]:
    """Give schema, rows, and the physical and logical hashes of a Parquet file, as plain values.

    Raises:
        MalformedError: It is no Parquet file.
    """
    with open_slice(path) as file:
        columns = [{"name": field.name, "type": str(field.type)} for field in file.schema_arrow]
        rows = file.metadata.num_rows
    digest = sha3_256()
    with path.open("rb") as raw:
        while chunk := raw.read(CHUNK_BYTES):
            digest.update(chunk)
    try:
        logical = str(logical_hash_of(path))
    except UnsupportedError as error:
        logical = f"not defined: {error}"
    return {
        "file": str(path),
        "sizeBytes": path.stat().st_size,
        "rows": rows,
        "physicalHash": str(Multihash(SHA3_256, digest.digest())),
        "logicalHash": logical,
        "columns": columns,
    }
