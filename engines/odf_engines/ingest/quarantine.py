"""Write the rows that could not be taken: what they were, and everything that is wrong with them.

Source: spec/ingest.md ING-6.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, tee
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest, QuarantineReason
from odf_engines.ingest.json_records import split_object
from odf_engines.ingest.quarantined_rows import BATCH_ROWS, BadRows, as_lists, join_rows, lengths_of
from odf_engines.ingest.reasons import Reasons
from odf_engines.ingest.source_text import is_utf8
from odf_engines.records.source_records import COLUMNS_TYPE, OriginalRecord, SourceRecords, columns_of
from odf_engines.stage_names import name_strategy

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
        pa.field("columns", COLUMNS_TYPE, nullable=False),
        pa.field("errors", _ERRORS_TYPE, nullable=False),
    ]
)

_WARNING = "warning"
_VALUE_CHARACTERS = 200  # of a value at fault (ING-6)


@dataclass(frozen=True, slots=True)
class QuarantineWriter:
    """What was written.

    Attributes:
        rows: How many.
        reasons: The commonest things that are wrong with them.
        codes: How many rows have an error of each code.
    """

    rows: int
    reasons: tuple[QuarantineReason, ...]
    codes: Mapping[str, int]


def write_quarantine(
    target: Path, request: IngestRequest, records: SourceRecords, rows: Sequence[BadRows]
) -> QuarantineWriter:
    """Write rows to the Parquet file `target`, those of the source by record number; no file if there are none.

    Args:
        target: File to write.
        request: Says what finds errors in each stage where they do not say it; where a query of another engine made
            the rows, the records that could not be converted for it stand first.
        records: Gives the original text of records.
        rows: Several lists.

    Returns:
        What was written: a record counts once, however many lists it is in.
    """
    reasons, lines = Reasons(), _Lines(request, records)
    earlier = None if request.prepared is None else request.prepared.quarantine
    count, writer = 0, None

    def iter_lines() -> Iterator[pa.RecordBatch]:
        for batch in () if earlier is None else _iter_batches(earlier):
            errors = batch.column("errors")
            is_warning = pc.equal(errors.flatten().field("severity"), _WARNING)
            reasons.add(batch.column("record"), batch.column("line"), errors, is_warning)
            yield batch
        for bad, written in lines.iter_written(join_rows(rows)):
            errors = bad.column("errors")
            reasons.add(bad.column("record"), written.column("line"), errors, errors.flatten().field("is_warning"))
            yield written

    try:
        for batch in _iter_subsets(iter_lines()):
            writer = writer or pq.ParquetWriter(target, SCHEMA, version="2.6", compression="zstd")
            writer.write_batch(batch)
            count += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return QuarantineWriter(count, reasons.list_commonest(), dict(reasons.codes))


def _iter_batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(batch_size=BATCH_ROWS)


def _iter_subsets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give batches anew, all but the last of them of `BATCH_ROWS`."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        while sum(each.num_rows for each in held) >= BATCH_ROWS:
            rows = pa.Table.from_batches(held).combine_chunks().to_batches()[0]
            yield rows.slice(0, BATCH_ROWS)
            held = [rows.slice(BATCH_ROWS)]
    if any(each.num_rows for each in held):
        yield pa.Table.from_batches(held).combine_chunks().to_batches()[0]


class _Lines:
    """Makes bad rows what is written of them: with the text that they came as, taken apart where it can be."""

    def __init__(self, request: IngestRequest, records: SourceRecords) -> None:
        self._records = records
        self._plug_ins = _plug_ins_of(request)
        # Converters may rename columns: then values are those that were looked at, and not those of the source.
        self._has_converters = bool(request.converters)

    def iter_written(self, rows: BadRows) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Give batches of rows, each with what is written of it."""
        numbered, listed = tee(rows)
        # Read once, in step with the rows: asking anew for each batch would scan the source as often.
        numbers = (number for batch in numbered for number in batch.column("record").drop_null().to_pylist())
        originals = self._records.find_originals(numbers)
        for batch in listed:
            count = len(batch) - batch.column("record").null_count
            yield batch, self._write(batch, list(islice(originals, count)))

    def _write(self, rows: pa.RecordBatch, originals: list[OriginalRecord]) -> pa.RecordBatch:
        """Give what is written of rows; those of the source stand first, and have an original each."""
        others = rows.column("text").slice(len(originals))
        texts, raws = _decode([each.raw for each in originals])
        columns = pa.concat_arrays(
            [
                self._records.split([each.raw for each in originals]),
                columns_of([() if text is None else split_object(text.encode()) for text in others.to_pylist()]),
            ]
        )
        nothing = len(others)
        return pa.record_batch(
            [
                rows.column("record"),
                pa.array([each.line for each in originals] + [None] * nothing, pa.int64()),
                rows.column("stage"),
                pa.concat_arrays([texts, others]),
                pa.concat_arrays([raws, pa.nulls(nothing, pa.binary())]),
                columns,
                self._write_errors(rows, columns),
            ],
            schema=SCHEMA,
        )

    def _write_errors(self, rows: pa.RecordBatch, columns: pa.ListArray) -> pa.ListArray:
        lists = rows.column("errors")
        errors = lists.flatten()
        row = np.repeat(np.arange(len(lists)), lengths_of(lists))
        stated = {name: errors.field(name) for name in ("plug_in", "code", "column", "value", "expected", "message")}
        stages = pc.dictionary_encode(rows.column("stage"))
        plug_ins = pa.array([self._plug_ins.get(stage, stage) for stage in stages.dictionary.to_pylist()], pa.string())
        stated["plug_in"] = pc.coalesce(stated["plug_in"], plug_ins.take(stages.indices).take(pa.array(row)))
        if not self._has_converters:
            # As it was received, where it is a column of the source and not one of a query.
            stated["value"] = pc.coalesce(_without_empty(_find_sent(columns, row, stated["column"])), stated["value"])
        stated["value"] = _without_empty(pc.utf8_slice_codeunits(stated["value"], 0, _VALUE_CHARACTERS))
        stated["severity"] = pc.if_else(errors.field("is_warning"), _WARNING, "error")
        kind = _ERRORS_TYPE.value_type
        faults = pa.StructArray.from_arrays([stated[field.name] for field in kind], fields=list(kind))
        return as_lists(lengths_of(lists), faults)


def _find_sent(columns: pa.ListArray, row: np.ndarray, names: pa.Array) -> pa.Array:
    """Find the value of the column that each error names, in the columns of its row."""
    sent = columns.flatten()
    known = pc.unique(sent.field("name"))
    of_row = np.repeat(np.arange(len(columns)), lengths_of(columns))

    def places(rows: np.ndarray, of: pa.Array) -> pa.Array:
        return pc.add(pc.index_in(of, known, skip_nulls=True), pa.array(rows * len(known)))

    found = pc.index_in(places(row, names), places(of_row, sent.field("name")), skip_nulls=True)
    return sent.field("value").take(found)


def _without_empty(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _decode(raws: list[bytes]) -> tuple[pa.Array, pa.Array]:
    """Give the texts of bytes, and the bytes of those that are no texts."""
    try:
        return pa.array(raws, pa.binary()).cast(pa.string()), pa.nulls(len(raws), pa.binary())
    except pa.ArrowInvalid:
        is_text = [is_utf8(raw) for raw in raws]
    texts = [raw.decode() if fits else None for raw, fits in zip(raws, is_text, strict=True)]
    return pa.array(texts, pa.string()), pa.array(raws, pa.binary(), mask=np.array(is_text))


def _plug_ins_of(request: IngestRequest) -> Mapping[str, str]:
    """Say what finds errors in each stage: the kinds of the read and merge steps, and the types of the columns."""
    return {
        "read": type(request.read).__name__.removeprefix("ReadStep"),
        "convert": "types",
        "merge": name_strategy(request),
    }


def write_no_rows(path: Path) -> None:
    """Write a file of bad rows that has none, for a batch of which none were found yet."""
    pq.write_table(SCHEMA.empty_table(), path)
