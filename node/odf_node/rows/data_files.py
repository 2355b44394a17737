"""Any Parquet file, described as the protocol sees it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from odf_node.rows.slices import hash_values_of, logical_hash_of, open_slice, physical_hash_of
from odf_protocol.errors import UnsupportedError
from odf_protocol.multihash import Multihash


def describe_data_file(path: Path) -> dict[str, Any]:
    """Give schema, rows, and the physical and logical hashes of a Parquet file, as plain values.

    ``logicalHash`` is ODF's (arrow0), ``logicalHashV1`` ours beside it.

    Raises:
        MalformedError: It is no Parquet file.
    """
    with open_slice(path) as file:
        columns = [{"name": field.name, "type": str(field.type)} for field in file.schema_arrow]
        rows = file.metadata.num_rows
    return {
        "file": str(path),
        "sizeBytes": path.stat().st_size,
        "rows": rows,
        "physicalHash": str(physical_hash_of(path)),
        "logicalHash": _hash_or_reason(logical_hash_of, path),
        "logicalHashV1": _hash_or_reason(hash_values_of, path),
        "columns": columns,
    }


def _hash_or_reason(hash_rows: Callable[[Path], Multihash], path: Path) -> str:
    try:
        return str(hash_rows(path))
    except UnsupportedError as error:
        return f"not defined: {error}"
