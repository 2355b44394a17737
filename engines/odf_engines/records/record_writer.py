"""Writes the records of a source to its records file, converted to the types of the schema.

Source: spec/ingest.md ING-1, ING-4.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.progress import report_count
from odf_engines.records.ahead import Ahead
from odf_engines.records.converted_texts import RFC_3339, ConvertedTexts, convert_texts, describe_form
from odf_engines.records.source_records import (
    ERRORS,
    ERRORS_TYPE,
    RECORD,
    ROW_GROUP_ROWS,
    FieldError,
    OriginalRecord,
    SourceRecords,
    Split,
    typed_schema,
)
from odf_engines.records.time_patterns import TimePatterns


class RecordWriter:
    """Writes rows of texts in batches, converted.

    Attributes:
        width: Texts of a row.
    """

    def __init__(
        self, path: Path, names: tuple[str, ...], target: pa.Schema | None = None, times: TimePatterns = RFC_3339
    ) -> None:
        """Open `path` for rows with a text for each name.

        Args:
            path: Of the rows.
            names: Of the source columns.
            target: What the rows are converted to; None: every column is text.
            times: How dates and timestamps are written.

        Raises:
            UnsupportedError: Texts cannot denote values of a type of ``target``.
        """
        self.width = len(names)
        texts = [pa.field(name, pa.string()) for name in names]
        self._schema = pa.schema([pa.field(RECORD, pa.int64(), nullable=False), *texts])
        self._path, self._bad_path, self._names = path, path.with_name(f"bad-{path.name}"), names
        if target is None:
            target = pa.schema([(name, pa.string()) for name in names])
        for field in target:
            describe_form(field.type, times)
        places = {name: place for place, name in reversed([*enumerate(names)])}
        self._target, self._times = [(places[field.name], field) for field in target], times
        self._typed = typed_schema(target)
        self._writer = _open(path, self._typed)
        self._bad_writer: pq.ParquetWriter | None = None
        self._records: list[int] = []
        self._rows: list[list[str | None]] = []
        self._converting = Ahead(self._convert, self._take)

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
        # Not a whole block of a file at once: threads would wait for each other.
        for first in range(0, rows.num_rows, ROW_GROUP_ROWS):
            self._converting.put(rows.slice(first, ROW_GROUP_ROWS))
        if len(records):
            report_count(records[-1].as_py())

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
        finally:
            self._converting.close()
            self._writer.close()
            if self._bad_writer is not None:
                self._bad_writer.close()

    def result(
        self,
        record_count: int,
        broken: Mapping[int, tuple[FieldError, ...]],
        find_originals: Callable[[Iterable[int]], Iterator[OriginalRecord]],
        split: Split,
    ) -> SourceRecords:
        """Say what was found, once the files are closed; for the arguments see `SourceRecords`."""
        return SourceRecords(
            self._path,
            self._names,
            record_count,
            broken,
            find_originals,
            unconverted=None if self._bad_writer is None else self._bad_path,
            split=split,
        )

    def _convert(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """Give the rows that can be converted, and the others, with what is wrong with each."""
        columns = [convert_texts(rows.column(index + 1), field, self._times) for index, field in self._target]
        nothing = pa.nulls(rows.num_rows, ERRORS_TYPE)
        converted = pa.record_batch([rows.column(0), nothing, *(each.values for each in columns)], schema=self._typed)
        if not any(len(each.bad) for each in columns):
            return converted, None
        places, faults = _by_row(columns)
        is_good = np.ones(rows.num_rows, bool)
        is_good[places.to_numpy()] = False
        bad = converted.take(places)
        # With the values that it has: they may say which row it is.
        bad = bad.set_column(bad.schema.get_field_index(ERRORS), self._typed.field(ERRORS), faults)
        return converted.filter(pa.array(is_good)), bad

    def _take(self, converted: tuple[pa.RecordBatch, pa.RecordBatch | None]) -> None:
        good, bad = converted
        if good.num_rows:
            self._writer.write_batch(good, ROW_GROUP_ROWS)
        if bad is not None:
            self._bad_writer = self._bad_writer or _open(self._bad_path, self._typed)
            self._bad_writer.write_batch(bad, ROW_GROUP_ROWS)


def _by_row(columns: list[ConvertedTexts]) -> tuple[pa.Array, pa.Array]:
    """Give the places of bad rows, ascending, and of each the faults in the order of the columns."""
    places = np.concatenate([each.bad for each in columns])
    faults = pa.concat_arrays([each.faults for each in columns])
    order = pa.array(np.argsort(places, kind="stable"))
    counted = pc.value_counts(pa.array(places).take(order))
    ends = pc.cumulative_sum(counted.field("counts")).cast(pa.int32())
    lists = pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), faults.take(order))
    return counted.field("values"), lists.cast(ERRORS_TYPE)


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # Every value is read once, a few seconds later: dictionaries and statistics would cost more than they save.
    return pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False, write_statistics=False)
