"""Write the rows that could not be taken: what they were, and everything that is wrong with them.

Source: spec/ingest.md ING-6.
"""

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, tee
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import MAX_CODES, MAX_REASONS, IngestRequest, QuarantineReason
from odf_engines.ingest.json_records import split_object
from odf_engines.ingest.source_text import InvalidTextError, decode_text
from odf_engines.records.source_records import (
    ERRORS,
    ERRORS_TYPE,
    RECORD,
    FieldError,
    OriginalRecord,
    SourceRecords,
)

_COLUMNS_TYPE = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
_ERRORS_TYPE = pa.list_(
    pa.struct([(n, pa.string()) for n in ("plug_in", "code", "column", "value", "expected", "message", "severity")])
)

SCHEMA = pa.schema(
    [
        pa.field("record", pa.int64()),
        pa.field("line", pa.int64()),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("original", pa.string()),
        pa.field("original_bytes", pa.binary()),
        pa.field("columns", _COLUMNS_TYPE, nullable=False),
        pa.field("errors", _ERRORS_TYPE, nullable=False),
    ]
)

BATCH_ROWS = 4096
_WARNING = "warning"
_SHOWN_CHARACTERS = 100  # of a value in a report; the row itself stands in the file  # guess
_VALUE_CHARACTERS = 200  # of a value at fault (ING-6)
_ELEMENT = re.compile(r"\[[0-9]+\]")
_MOST_KINDS = 1000  # guess: a table of some hundred columns with a few kinds of errors each


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One row: its record number if it is one of the source, its text if it is the result of a query."""

    record: int | None
    stage: str
    errors: tuple[FieldError, ...]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """What was written.

    Attributes:
        rows: How many.
        reasons: The commonest things that are wrong with them.
        codes: How many rows have an error of each code.
    """

    rows: int
    reasons: tuple[QuarantineReason, ...]
    codes: Mapping[str, int]


@dataclass(slots=True)
class _Reasons:
    """Counts what is wrong with rows; errors of one kind in one column are one reason."""

    codes: Counter[str] = field(default_factory=Counter)
    _rows: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    _first: dict[tuple[str | None, str], QuarantineReason] = field(default_factory=dict)

    def add(self, row: QuarantinedRow, original: OriginalRecord | None) -> None:
        """Count the errors of one row, without what does not keep it away."""
        errors = [error for error in row.errors if not error.is_warning]
        for code in {error.code for error in errors}:
            if code in self.codes or len(self.codes) < MAX_CODES:
                self.codes[code] += 1
        kinds = {(_ELEMENT.sub("[]", error.column) if error.column else None, error.message): error for error in errors}
        for key, error in kinds.items():
            # Texts of a library may differ with each row: what is seen late is not among the commonest.
            if key not in self._first and len(self._first) >= _MOST_KINDS:
                continue
            self._rows[key] += 1
            if key not in self._first:
                line = None if original is None else original.line
                value = None if error.value is None else error.value[:_SHOWN_CHARACTERS]
                self._first[key] = QuarantineReason(
                    rows=0, reason=error.message, column=error.column, value=value, record=row.record, line=line
                )

    def list_commonest(self) -> tuple[QuarantineReason, ...]:
        """List the commonest reasons, most rows first."""
        return tuple(replace(self._first[key], rows=rows) for key, rows in self._rows.most_common(MAX_REASONS))


def _plug_ins_of(request: IngestRequest) -> Mapping[str, str]:
    """Say what finds errors in each stage: the kinds of the read and merge steps, and the types of the columns."""
    kinds = type(request.read).__name__, type(request.merge).__name__
    return {
        "read": kinds[0].removeprefix("ReadStep"),
        "convert": "types",
        "merge": kinds[1].removeprefix("MergeStrategy"),
    }


def list_reasons(rows: Iterable[QuarantinedRow]) -> tuple[QuarantineReason, ...]:
    """List the commonest things that are said of rows that are not written; most rows first."""
    reasons = _Reasons()
    for row in rows:
        reasons.add(row, None)
    return reasons.list_commonest()


def iter_unread(records: SourceRecords) -> Iterator[QuarantinedRow]:
    """Give the records that a read step could not take apart, or not convert, by number."""
    broken = (QuarantinedRow(number, "read", records.broken[number]) for number in sorted(records.broken))
    if records.unconverted is None:
        return broken
    return heapq.merge(broken, _iter_unconverted(records.unconverted), key=lambda row: row.record or 0)


def _iter_unconverted(path: Path) -> Iterator[QuarantinedRow]:
    with pq.ParquetFile(path) as file:
        yield from rows_of_errors(file.iter_batches(batch_size=BATCH_ROWS))


def rows_of_errors(batches: Iterable[pa.RecordBatch]) -> Iterator[QuarantinedRow]:
    """Give the rows of batches of record numbers and lists of what kept these from being converted."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            rows = batch.slice(start, BATCH_ROWS)
            lists = rows.column(ERRORS)
            texts = (lists.flatten().field(field.name).to_pylist() for field in ERRORS_TYPE.value_type)
            errors = map(FieldError, *texts)
            for record, count in zip(rows.column(RECORD).to_pylist(), lists.value_lengths().to_pylist(), strict=True):
                yield QuarantinedRow(record, "convert", tuple(islice(errors, count)))


def write_quarantine(
    target: Path, request: IngestRequest, records: SourceRecords, rows: Iterable[Iterator[QuarantinedRow]]
) -> Quarantine:
    """Write rows to the Parquet file `target`, those of the source by record number; no file if there are none.

    Args:
        target: File to write.
        request: Says what finds errors in each stage where they do not say it; where a query of another engine made
            the rows, the records that could not be converted for it stand first.
        records: Gives the original text of records.
        rows: Several lists, each ordered by record number, and those without one.

    Returns:
        What was written: a record counts once, however many lists it is in.
    """
    merged = heapq.merge(*rows, key=lambda row: (row.record is None, row.record or 0))
    numbered, listed = tee(_joined(merged))
    # Read once, in step with the rows: asking anew for each batch would scan the source as often.
    originals = records.find_originals(row.record for row in numbered if row.record is not None)
    count, reasons, plug_ins = 0, _Reasons(), _plug_ins_of(request)
    earlier = None if request.prepared is None else request.prepared.quarantine
    # Converters may rename columns: then values are those that were looked at, and not those of the source.
    has_converters = bool(request.converters)

    def lines_of_rows() -> Iterator[dict[str, object]]:
        for line in () if earlier is None else _iter_lines(earlier):
            reasons.add(_row_of(line), OriginalRecord(line["record"], line["line"], b""))
            yield line
        for row in listed:
            original = None if row.record is None else next(originals)
            reasons.add(row, original)
            yield _line(row, original, records, plug_ins, has_converters=has_converters)

    lines = lines_of_rows()
    writer: pq.ParquetWriter | None = None
    try:
        while batch := list(islice(lines, BATCH_ROWS)):
            writer = writer or pq.ParquetWriter(target, SCHEMA, version="2.6", compression="zstd")
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=SCHEMA))
            count += len(batch)
    finally:
        if writer is not None:
            writer.close()
    return Quarantine(count, reasons.list_commonest(), dict(reasons.codes))


def _iter_lines(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            yield from batch.to_pylist()


def _row_of(line: Mapping[str, Any]) -> QuarantinedRow:
    errors = [
        FieldError(
            each["message"], each["column"], each["value"], each["expected"], each["code"],
            is_warning=each["severity"] == _WARNING,
        )
        for each in line["errors"]
    ]  # fmt: skip
    return QuarantinedRow(line["record"], line["stage"], tuple(errors))


def _joined(rows: Iterable[QuarantinedRow]) -> Iterator[QuarantinedRow]:
    """Join neighbours that are about the same record."""
    for record, same in groupby(rows, key=attrgetter("record")):
        if record is None:
            yield from same
            continue
        first, *others = same
        if others:
            first = replace(first, errors=first.errors + tuple(error for row in others for error in row.errors))
        yield first


def _line(
    row: QuarantinedRow,
    original: OriginalRecord | None,
    records: SourceRecords,
    plug_ins: Mapping[str, str],
    *,
    has_converters: bool,
) -> dict[str, object]:
    text, raw = row.text, None
    columns = () if text is None else split_object(text.encode())
    if original is not None:
        columns = records.split(original.raw)
        try:
            text = decode_text(original.raw)
        except InvalidTextError:
            raw = original.raw
    given = dict(columns)
    sent = {} if has_converters else given
    errors = [
        {
            "plug_in": error.plug_in or plug_ins.get(row.stage, row.stage),
            "code": error.code,
            "column": error.column,
            # As it was received, where it is a column of the source and not one of a query.
            "value": (sent.get(error.column or "") or error.value or "")[:_VALUE_CHARACTERS] or None,
            "expected": error.expected,
            "message": error.message,
            "severity": _WARNING if error.is_warning else "error",
        }
        for error in row.errors
    ]
    return {
        "record": row.record,
        "line": None if original is None else original.line,
        "stage": row.stage,
        "original": text,
        "original_bytes": raw,
        "columns": [{"name": name, "value": value} for name, value in given.items()],
        "errors": errors,
    }
