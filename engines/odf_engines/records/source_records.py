"""The result of reading a source file: its well-formed records as a table of texts, and what is known about the others.

A read step writes one Parquet file with the column `record` (number of the record in the file, from 1, ascending) and
one column per source column, named by position (`c0`, `c1`, …) because a source may use any name. Records that do not
have the shape of a record (wrong number of fields, broken JSON, not UTF-8) are not in it; they are `broken`.
Formats of text leave conversion to a later step: here their values are texts, or null; only records whose texts are all
plain (`plain_texts`) are converted at once, into a second file. A typed format writes converted rows alone.

Source: spec/ingest.md ING-1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.progress import tell_count
from odf_engines.records.ahead import Ahead
from odf_engines.records.carriers import carrier_of
from odf_engines.records.plain_texts import convert_plain, is_plain_type

RECORD = "record"

ERRORS = "errors"
ERRORS_TYPE = pa.list_(pa.struct([(name, pa.string()) for name in ("message", "column", "value", "expected", "code")]))

BROKEN_RECORD = "broken-record"
"""The code of what cannot be taken apart."""

NULL, FORM, MISFIT = "null", "form", "misfit"
"""Codes of values: none where one is required, of another form, of the form and not in the type."""

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
        message: Why the record cannot be taken.
        column: Name of the column, or path into it; None if the record as a whole is wrong.
        value: Text of the value; None for null or for the whole record.
        expected: The type the column has.
        code: A word for programs (ING-6).
        plug_in: What found it; None: the step of its row.
        is_warning: It does not keep the record away.
    """

    message: str
    column: str | None = None
    value: str | None = None
    expected: str | None = None
    code: str = BROKEN_RECORD
    plug_in: str | None = None
    is_warning: bool = False


Split = Callable[[bytes], Iterable[tuple[str, str | None]]]


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """What a read step found.

    Attributes:
        path: Parquet file of the well-formed records.
        names: Names of the source columns; column `i` of the source is `c<i>` in the file.
        record_count: All records of the source, well-formed or not.
        broken: For each record that is not in the file, by number: everything that is wrong with it.
        is_typed: The columns have the types of the schema already; otherwise they are texts.
        plain_path: Parquet file of further well-formed records, which have the types of the schema; None if there are
            none.
        find_originals: Gives the original bytes of records, asked for by ascending number.
        split: Takes the bytes of a record apart into names and texts of its columns, as far as they can be.
    """

    path: Path
    names: tuple[str, ...]
    record_count: int
    broken: Mapping[int, tuple[FieldError, ...]]
    find_originals: Callable[[Iterable[int]], Iterator[OriginalRecord]]
    is_typed: bool = False
    plain_path: Path | None = None
    split: Split = lambda _raw: ()


def physical_name(index: int) -> str:
    """Name the column of the records file that holds source column `index`."""
    return f"c{index}"


def value_name(index: int) -> str:
    """Name the column of converted rows that holds field `index` of the schema."""
    return f"v{index}"


def typed_schema(target: pa.Schema) -> pa.Schema:
    """Give the columns of a file of converted records, named by position, in carrier types."""
    fields = [pa.field(RECORD, pa.int64(), nullable=False), pa.field(ERRORS, ERRORS_TYPE)]
    fields += [pa.field(value_name(i), carrier_of(field.type)) for i, field in enumerate(target)]
    return pa.schema(fields)


class RecordWriter:
    """Writes rows of texts to records files in batches: rows of plain texts converted, all others as they are.

    Attributes:
        width: Texts of a row.
    """

    def __init__(self, path: Path, names: tuple[str, ...], target: pa.Schema | None = None) -> None:
        """Open `path` for rows with a text for each name.

        Args:
            path: Of the rows that stay texts.
            names: Of the source columns.
            target: What the rows are to be converted to; None if nothing is to be converted here.
        """
        self.width = len(names)
        fields = [pa.field(RECORD, pa.int64(), nullable=False)]
        fields += [pa.field(physical_name(i), pa.string()) for i in range(len(names))]
        self._schema = pa.schema(fields)
        self._writer = _open(path, self._schema)
        self._plain_writer: pq.ParquetWriter | None = None
        self._path, self._plain_path, self._names = path, path.with_name(f"plain-{path.name}"), names
        self._text_rows = 0
        self._target: list[tuple[int, pa.Field]] = []
        if target is not None and all(is_plain_type(field.type) for field in target):
            self._target = [(names.index(field.name), field) for field in target]
            self._typed = typed_schema(target)
        self._records: list[int] = []
        self._rows: list[list[str | None]] = []
        self._converting = Ahead(self._convert_plain, self._take)

    def write(self, record: int, values: list[str | None]) -> None:
        """Add one row."""
        self._records.append(record)
        self._rows.append(values)
        # guess: bounds the memory of rows held as Python objects
        if len(self._rows) >= 16_384:
            self.flush()

    def write_arrays(self, records: pa.Array, columns: list[pa.Array]) -> None:
        """Add many rows that are Arrow arrays already: record numbers and texts."""
        rows = pa.record_batch([records, *columns], schema=self._schema)
        if self._target:
            self._converting.put(rows)
        else:
            self._write_texts(rows)
        if len(records):
            tell_count(records[-1].as_py())

    def flush(self) -> None:
        """Write the rows held so far."""
        if not self._rows:
            return
        columns = [pa.array([row[i] for row in self._rows], pa.string()) for i in range(self.width)]
        self.write_arrays(pa.array(self._records, pa.int64()), columns)
        self._records, self._rows = [], []

    def close(self) -> None:
        """Write what is left and end the files."""
        try:
            self.flush()
            self._converting.finish()
            if self._target and not self._text_rows and self._plain_writer is None:
                # No row is one that is not plain.
                self._plain_writer = _open(self._plain_path, self._typed)
        finally:
            self._converting.close()
            self._writer.close()
            if self._plain_writer is not None:
                self._plain_writer.close()

    def result(
        self,
        record_count: int,
        broken: Mapping[int, tuple[FieldError, ...]],
        find_originals: Callable[[Iterable[int]], Iterator[OriginalRecord]],
        split: Split,
    ) -> SourceRecords:
        """Say what was found, once the files are closed; for the arguments see `SourceRecords`."""
        plain = None if self._plain_writer is None else self._plain_path
        is_typed = plain is not None and not self._text_rows
        return SourceRecords(
            plain if is_typed and plain is not None else self._path,
            self._names,
            record_count,
            broken,
            find_originals,
            is_typed=is_typed,
            plain_path=None if is_typed else plain,
            split=split,
        )

    def _convert_plain(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Give the rows that can be converted here, converted, and the others."""
        values, is_good = [], None
        for index, field in self._target:
            texts = rows.column(index + 1)
            value, is_plain = convert_plain(texts, field.type)
            if not field.nullable:
                is_plain = pc.and_(is_plain, pc.is_valid(texts))
            is_good = is_plain if is_good is None else pc.and_(is_good, is_plain)
            values.append(value)
        nothing = pa.nulls(rows.num_rows, ERRORS_TYPE)
        converted = pa.record_batch([rows.column(0), nothing, *values], schema=self._typed)
        if pc.all(is_good).as_py() is not False:
            return converted, rows.slice(0, 0)
        return converted.filter(is_good), rows.filter(pc.invert(is_good))

    def _take(self, judged: tuple[pa.RecordBatch, pa.RecordBatch]) -> None:
        converted, left = judged
        if converted.num_rows:
            self._plain_writer = self._plain_writer or _open(self._plain_path, self._typed)
            self._plain_writer.write_batch(converted, ROW_GROUP_ROWS)
        self._write_texts(left)

    def _write_texts(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._writer.write_batch(rows, ROW_GROUP_ROWS)
            self._text_rows += rows.num_rows


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # Every value is read once, a few seconds later: dictionaries and statistics would cost more than they save.
    return pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False, write_statistics=False)
