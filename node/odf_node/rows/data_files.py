"""Any Parquet file, described as the protocol sees it."""

from pathlib import Path
from typing import Any

from odf_node.rows.file_hashes import physical_hash_of
from odf_node.rows.slice_process import SliceProcess


def describe_data_file(path: Path) -> dict[str, Any]:
    """Give schema, rows, and the physical and logical hashes of a Parquet file, as plain values.

    ``logicalHash`` is ODF's (arrow0), ``logicalHashV1`` ours beside it.

    Raises:
        MalformedError, RejectedError: It is no Parquet file, or none that can be read at bounded cost.
    """
    with SliceProcess() as reader:
        found = reader.describe(path)
    return {
        "file": str(path),
        "sizeBytes": path.stat().st_size,
        "rows": found["rows"],
        "physicalHash": str(physical_hash_of(path)),
        "logicalHash": found["logical_hash"],
        "logicalHashV1": found["values_hash"],
        "columns": found["columns"],
    }
