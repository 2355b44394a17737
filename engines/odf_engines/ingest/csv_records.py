r"""Read a CSV file into records of text.

Arrow splits the file wherever its grammar agrees with `csv_grammar`: that is every file but those that are not UTF-8
and those that hold both quotes and escape characters; they go through the exact, slower form. Arrow's own handling of
escape characters is never used: it also unescapes outside quotes, where a backslash is ordinary text (`C:\temp`).

Source: ODF ReadStepCsv; spec/ingest.md ING-2.
"""

import io
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from odf_engines.ingest.csv_grammar import CsvDialect, first_position, iter_records, iter_spans
from odf_engines.ingest.plain_lines import iter_lines
from odf_engines.ingest.source_text import InvalidTextError, decode_text, is_utf8, open_bytes
from odf_engines.records.ahead import iter_ahead
from odf_engines.records.converted_texts import RFC_3339
from odf_engines.records.record_writer import RecordWriter
from odf_engines.records.source_records import (
    COLUMNS_TYPE,
    FieldError,
    OriginalRecord,
    SourceRecords,
    Split,
    columns_of,
)
from odf_engines.records.time_patterns import TimePatterns

# One record must fit a block; an unclosed quote otherwise swallows the rest of a file of any size.  # guess
MAX_RECORD_BYTES = 16 * 1024 * 1024


class TooLongRecordError(Exception):
    """A record is longer than `MAX_RECORD_BYTES`."""


def read_header(path: Path, dialect: CsvDialect) -> tuple[str, ...]:
    """Read the names of the columns from the first record; no names if the file has no record.

    Raises:
        InvalidTextError: The header is not UTF-8.
        TooLongRecordError: It is longer than `MAX_RECORD_BYTES`.
    """
    with open_bytes(path) as data:
        # Before it is taken apart: each of its fields takes many times the bytes that it has.
        start, end = next(iter_spans(data, dialect), (0, 0))
        if end - start > MAX_RECORD_BYTES:
            raise TooLongRecordError
        first = next(iter_records(data, dialect), None)
    return () if first is None else tuple(decode_text(name) for name in first.fields)


def iter_sample(path: Path, dialect: CsvDialect, limit: int, *, header: bool) -> Iterator[tuple[str | None, ...]]:
    """Read the first `limit` records as texts, leaving out those that are not UTF-8."""
    with open_bytes(path) as data:
        for record in islice(iter_records(data, dialect), int(header), limit + int(header)):
            try:
                yield tuple(decode_text(field) or None for field in record.fields)
            except InvalidTextError:
                continue


def read_csv(
    path: Path,
    records_path: Path,
    dialect: CsvDialect,
    names: tuple[str, ...],
    *,
    header: bool,
    target: pa.Schema | None = None,
    times: TimePatterns = RFC_3339,
) -> SourceRecords:
    """Split the file at `path` into records of `len(names)` texts, and convert them; empty text becomes null.

    For `target` and `times` see ``RecordWriter``.

    Raises:
        TooLongRecordError: A record is longer than `MAX_RECORD_BYTES`.
        UnsupportedError: Texts cannot denote values of a type of the target.
    """
    with open_bytes(path) as data:
        is_empty = next(iter_spans(data, dialect), None) is None
        has_quotes = data.find(dialect.quote) >= 0
        has_escapes = dialect.escape is not None and data.find(dialect.escape) >= 0
        is_exact = (has_quotes and has_escapes) or not is_utf8(data)
    find_originals = _originals_of(path, dialect, header=header, has_quotes=has_quotes)
    split = _splitter(dialect, names)
    if is_empty:
        writer = RecordWriter(records_path, names, target, times)
        writer.close()
        return writer.result(0, {}, find_originals, split)
    if not is_exact:
        try:
            with closing(RecordWriter(records_path, names, target, times)) as writer:
                count, broken = _read_with_arrow(path, writer, dialect, header=header, has_quotes=has_quotes)
            return writer.result(count, broken, find_originals, split)
        except _OpenQuoteError:
            pass
    with closing(RecordWriter(records_path, names, target, times)) as writer:
        count, broken = _read_exactly(path, writer, dialect, header=header)
    return writer.result(count, broken, find_originals, split)


class _OpenQuoteError(Exception):
    """The file ends inside a quoted field, which Arrow takes for a good one."""


def _read_exactly(
    path: Path, writer: RecordWriter, dialect: CsvDialect, *, header: bool
) -> tuple[int, dict[int, tuple[FieldError, ...]]]:
    broken: dict[int, tuple[FieldError, ...]] = {}
    number, width = 0, writer.width
    with open_bytes(path) as data:
        for number, record in enumerate(iter_records(data, dialect), start=0 if header else 1):
            if number == 0:
                continue
            if record.end - record.start > MAX_RECORD_BYTES:
                raise TooLongRecordError
            if len(record.fields) != width:
                broken[number] = _wrong_width(width, len(record.fields))
                continue
            if not record.is_closed:
                broken[number] = (FieldError("the file ends inside a quoted field"),)
                continue
            try:
                writer.write(number, [decode_text(field) or None for field in record.fields])
            except InvalidTextError:
                broken[number] = (FieldError("the record is not valid UTF-8"),)
    return number, broken


def _read_with_arrow(
    path: Path, writer: RecordWriter, dialect: CsvDialect, *, header: bool, has_quotes: bool
) -> tuple[int, dict[int, tuple[FieldError, ...]]]:
    broken: dict[int, tuple[FieldError, ...]] = {}
    noted: dict[int, tuple[FieldError, ...]] = {}
    shift, width = 1 if header else 0, writer.width
    columns = [f"column {place}" for place in range(width)]

    def note_invalid(row: pa_csv.InvalidRow) -> str:
        noted[row.number - shift] = _wrong_width(width, row.actual_columns)
        return "skip"

    reader = pa_csv.open_csv(
        pa.PythonFile(_EndedFile(path, _end_record(dialect, width)), mode="r"),
        # One thread for the grammar: only then does Arrow say which record is invalid.
        read_options=pa_csv.ReadOptions(use_threads=False, column_names=columns, block_size=MAX_RECORD_BYTES),
        parse_options=pa_csv.ParseOptions(
            delimiter=dialect.separator.decode(),
            quote_char=dialect.quote.decode() if has_quotes else False,
            double_quote=has_quotes,
            escape_char=False,
            newlines_in_values=has_quotes,
            ignore_empty_lines=True,
            invalid_row_handler=note_invalid,
        ),
        convert_options=pa_csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )
    number = 0
    held: pa.RecordBatch | None = None
    # The next block is taken apart while those before it are converted and written.
    for batch, found in iter_ahead(_iter_batches(reader, noted)):
        broken.update(found)
        if held is not None:
            number = _write_batch(writer, held, number, shift, broken)
        held = batch
    broken.update(noted)
    last = held.num_rows - 1 if held is not None else -1
    # In all columns: a record of the source may begin like this one, and end with an open quote.
    if held is None or last < 0 or any(column[last].as_py() != _END for column in held.columns):
        raise _OpenQuoteError
    number = _write_batch(writer, held.slice(0, last), number, shift, broken)
    # What follows the last good record is broken.
    while number + 1 - shift in broken:
        number += 1
    return number - shift, broken


_END = "\0end of file"


def _end_record(dialect: CsvDialect, width: int) -> bytes:
    return b"\n" + dialect.separator.join([_END.encode()] * width) + b"\n"


class _EndedFile(io.RawIOBase):
    """A file with one more record behind its end: if that does not come out whole, the file ends in quotes."""

    def __init__(self, path: Path, end: bytes) -> None:
        self._file = path.open("rb")
        self._end = io.BytesIO(end)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size) or self._end.read(size)

    def close(self) -> None:
        self._file.close()
        super().close()


def _iter_batches(
    reader: pa_csv.CSVStreamingReader, noted: dict[int, tuple[FieldError, ...]]
) -> Iterator[tuple[pa.RecordBatch, dict[int, tuple[FieldError, ...]]]]:
    """Give batches, each with the broken records that were ``noted`` until it was read; those behind the last stay."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except pa.ArrowInvalid as error:
            if "straddling" in str(error):
                raise TooLongRecordError from error
            raise
        found = dict(noted)
        noted.clear()
        yield batch, found


def _write_batch(
    writer: RecordWriter, batch: pa.RecordBatch, last: int, shift: int, broken: dict[int, tuple[FieldError, ...]]
) -> int:
    """Write good rows under their numbers; return how many records are done, the header and broken ones included."""
    if batch.num_rows == 0:
        return last
    numbers, done = _number_rows(last, batch.num_rows, shift, broken)
    if numbers[0] == 0:
        batch, numbers = batch.slice(1), numbers[1:]
    # Not number by number, which took a tenth of an ingest.
    records = np.arange(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers
    writer.write_arrays(pa.array(records, pa.int64()), batch.columns)
    return done


def _number_rows(
    last: int, row_count: int, shift: int, broken: dict[int, tuple[FieldError, ...]]
) -> tuple[list[int] | range, int]:
    """Give the next `row_count` good rows their record numbers: those that follow `last` and are not broken."""
    first = last + 1 - shift
    if not broken or max(broken) < first:
        return range(first, first + row_count), last + row_count
    numbers: list[int] = []
    number = first
    while len(numbers) < row_count:
        if number not in broken:
            numbers.append(number)
        number += 1
    return numbers, number - 1 + shift


def _wrong_width(expected: int, found: int) -> tuple[FieldError]:
    return (FieldError(f"wrong number of fields: expected {expected}, found {found}"),)


def _splitter(dialect: CsvDialect, names: tuple[str, ...]) -> Split:
    def split_one(raw: bytes) -> Iterator[tuple[str, str | None]]:
        # Without quotes every separator separates.
        plain = None if dialect.quote in raw else raw.split(dialect.separator)
        record = next(iter_records(raw, dialect), None) if plain is None else None
        for index, field in enumerate(plain or (() if record is None else record.fields)):
            name = names[index] if index < len(names) else f"column_{index + 1}"
            yield name, field.decode("utf-8", "backslashreplace") or None

    def split(raws: Sequence[bytes]) -> pa.ListArray:
        try:
            texts = pa.array(raws, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            return columns_of(map(split_one, raws))
        fields = pc.split_pattern(texts, dialect.separator.decode())
        is_plain = pc.and_(
            pc.equal(pc.list_value_length(fields), len(names)),
            pc.invert(pc.match_substring(texts, dialect.quote.decode())),
        )
        values = fields.filter(is_plain).flatten()
        values = pc.if_else(pc.equal(values, ""), None, values)
        places = pa.array(np.tile(np.arange(len(names)), len(values) // max(1, len(names))))
        kind = COLUMNS_TYPE.value_type
        parts = pa.StructArray.from_arrays([pa.array(names, pa.string()).take(places), values], fields=list(kind))
        ends = pa.array(np.arange(0, len(values) + 1, max(1, len(names))), pa.int32())
        plain = pa.ListArray.from_arrays(ends, parts).cast(COLUMNS_TYPE)
        if len(plain) == len(raws):
            return plain
        others = pc.indices_nonzero(pc.invert(is_plain)).to_pylist()
        both = pa.concat_arrays([plain, columns_of(split_one(raws[place]) for place in others)])
        order = np.argsort(np.concatenate([pc.indices_nonzero(is_plain).to_numpy(), others]), kind="stable")
        return both.take(pa.array(order))

    return split


def _originals_of(
    path: Path, dialect: CsvDialect, *, header: bool, has_quotes: bool
) -> Callable[[Iterable[int]], Iterator[OriginalRecord]]:
    def find_lines(numbers: Iterable[int]) -> Iterator[OriginalRecord]:
        with open_bytes(path) as data:
            yield from iter_lines(data, numbers, position=first_position(data), first=0 if header else 1)

    def find_originals(numbers: Iterable[int]) -> Iterator[OriginalRecord]:
        wanted = iter(numbers)
        number = next(wanted, None)
        if number is None:
            return
        line, counted = 1, 0
        with open_bytes(path) as data:
            for found, (start, end) in enumerate(iter_spans(data, dialect), start=0 if header else 1):
                if found != number:
                    continue
                line += _count(data, b"\n", counted, start)
                counted = start
                yield OriginalRecord(number, line, data[start:end])
                number = next(wanted, None)
                if number is None:
                    return

    return find_originals if has_quotes else find_lines


def _count(data: bytes | mmap.mmap, byte: bytes, start: int = 0, end: int | None = None) -> int:
    # In steps, so that counting in a large file copies no large part of it.
    step, stop = 1 << 20, len(data) if end is None else end
    return sum(data[at : min(at + step, stop)].count(byte) for at in range(start, stop, step))
