"""The result of reading a source file: its well-formed records as a table of texts, and what is known about the others.

A read step writes one Parquet file with the column `record` (number of the record in the file, from 1, ascending) and
one column per source column, named by position (`c0`, `c1`, …) because a source may use any name. Records that do not
have the shape of a record (wrong number of fields, broken JSON, not UTF-8) are not in it; they are `broken`.
Formats of text leave conversion to a later step: here their values are texts, or null. A typed format writes converted
rows at once, see `convert`.

Source: spec/ingest.md ING-1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

RECORD = "record"

ERRORS = "errors"
ERRORS_TYPE = pa.list_(pa.struct([(name, pa.string()) for name in ("reason", "column", "value", "expected")]))

# Rows of one row group: small enough that a few fit a 1 GiB heap, large enough that Spark can split a file.  # guess
ROW_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class OriginalRecord:
    """The bytes of a record as they stand in the source.

    Attributes:
        record: Its number, from 1; a CSV header is not counted.
        line: The line it begins on, from 1; None where a source has no lines.
        raw: Its bytes, without the line end.
    """

    record: int
    line: int | None
    raw: bytes


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong with a record.

    Attributes:
        reason: Why the record cannot be taken.
        column: Name of the column; None if the record as a whole is wrong.
        value: Text of the value; None for null or for the whole record.
        expected: The type the column has.
    """

    reason: str
    column: str | None = None
    value: str | None = None
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """What a read step found.

    Attributes:
        path: Parquet file of the well-formed records.
        names: Names of the source columns; column `i` of the source is `c<i>` in the file.
        record_count: All records of the source, well-formed or not.
        broken: For each record that is not in the file, by number: everything that is wrong with it.
        is_typed: The columns have the types of the schema already; otherwise they are texts.
        find_originals: Gives the original bytes of records, asked for by ascending number.
    """

    path: Path
    names: tuple[str, ...]
    record_count: int
    broken: Mapping[int, tuple[FieldError, ...]]
    find_originals: Callable[[Iterable[int]], Iterator[OriginalRecord]]
    is_typed: bool = False


def physical_name(index: int) -> str:
    """Name the column of the records file that holds source column `index`."""
    return f"c{index}"


def value_name(index: int) -> str:
    """Name the column of converted rows that holds field `index` of the schema."""
    return f"v{index}"


class RecordWriter:
    """Writes rows of texts to a records file in batches.

    Attributes:
        width: Texts of a row.
    """

    def __init__(self, path: Path, column_count: int) -> None:
        """Open `path` for rows of `column_count` texts."""
        self.width = column_count
        fields = [pa.field(RECORD, pa.int64(), nullable=False)]
        fields += [pa.field(physical_name(i), pa.string()) for i in range(column_count)]
        self._schema = pa.schema(fields)
        # Every value is read once, a few seconds later: dictionaries and statistics would cost more than they save.
        self._writer = pq.ParquetWriter(
            path, self._schema, compression="lz4", use_dictionary=False, write_statistics=False
        )
        self._records: list[int] = []
        self._rows: list[list[str | None]] = []

    def write(self, record: int, values: list[str | None]) -> None:
        """Add one row."""
        self._records.append(record)
        self._rows.append(values)
        # guess: bounds the memory of rows held as Python objects
        if len(self._rows) >= 16_384:
            self.flush()

    def write_arrays(self, records: pa.Array, columns: list[pa.Array]) -> None:
        """Add many rows that are Arrow arrays already: record numbers and texts."""
        self._writer.write_batch(pa.record_batch([records, *columns], schema=self._schema), ROW_GROUP_ROWS)

    def flush(self) -> None:
        """Write the rows held so far."""
        if not self._rows:
            return
        columns = [pa.array([row[i] for row in self._rows], pa.string()) for i in range(len(self._schema) - 1)]
        self.write_arrays(pa.array(self._records, pa.int64()), columns)
        self._records, self._rows = [], []

    def close(self) -> None:
        """Write what is left and end the file."""
        self.flush()
        self._writer.close()
