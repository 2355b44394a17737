"""Files of deletes of an Iceberg table: which rows of a data file are none of the table's.

Source: clause ICEBERG-8 in ``spec/plug-ins/iceberg.md``; Iceberg table specification, "Position Delete Files".
"""

import io
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

_FIELD_ID: Final = b"PARQUET:field_id"
SCHEMA: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={_FIELD_ID: b"2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={_FIELD_ID: b"2147483545"}),
    ]
)
"""Source: Iceberg table specification, "Reserved Field IDs"."""


def encode_deletes(path: str, rows: npt.NDArray[Any]) -> bytes:
    """Make the file that deletes rows of one data file, given by their places in it in any order."""
    positions = pa.array(np.sort(rows).astype(np.int64))
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), pa.array([path])).cast(pa.string())
    target = io.BytesIO()
    with pq.ParquetWriter(target, SCHEMA, compression="zstd", store_schema=False) as writer:
        writer.write_table(pa.table([paths, positions], schema=SCHEMA))
    return target.getvalue()
