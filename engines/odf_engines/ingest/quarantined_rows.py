"""Rows that could not be taken, on their way to quarantine: by columns, as a bad row of a hundred is a lot of rows.

Each step that leaves rows out gives them by record number; what several steps say of one record is joined here.

Source: spec/ingest.md ING-6.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.records.source_records import ERRORS, ERRORS_TYPE, RECORD, FieldError, SourceRecords

BATCH_ROWS = 4096

_FAULTS_TYPE = pa.list_(pa.struct([*ERRORS_TYPE.value_type, ("plug_in", pa.string()), ("is_warning", pa.bool_())]))
SCHEMA = pa.schema(
    [("record", pa.int64()), ("stage", pa.string()), ("text", pa.string()), pa.field("errors", _FAULTS_TYPE)]
)
"""Bad rows by columns; for the meaning see `QuarantinedRow`."""


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One row: its record number if it is one of the source, its text if it is the result of a query."""

    record: int | None
    stage: str
    errors: tuple[FieldError, ...]
    text: str | None = None


BadRows = Iterator[pa.RecordBatch]
"""Batches in `SCHEMA`: each record once, ascending, and then the rows that are none of the source."""


def iter_batches(rows: Iterable[QuarantinedRow]) -> BadRows:
    """Give rows by columns, a bounded number at a time."""
    left = iter(rows)
    while some := list(islice(left, BATCH_ROWS)):
        errors = [error for row in some for error in row.errors]
        kind = _FAULTS_TYPE.value_type
        faults = pa.StructArray.from_arrays(
            [pa.array([getattr(error, field.name) for error in errors], field.type) for field in kind],
            fields=list(kind),
        )
        columns = [
            pa.array([row.record for row in some], pa.int64()),
            pa.array([row.stage for row in some], pa.string()),
            pa.array([row.text for row in some], pa.string()),
            as_lists(np.array([len(row.errors) for row in some]), faults),
        ]
        yield pa.record_batch(columns, schema=SCHEMA)


def list_unread(records: SourceRecords) -> list[BadRows]:
    """Give the records that a read step could not take apart, and those that it could not convert."""
    broken = (QuarantinedRow(number, "read", records.broken[number]) for number in sorted(records.broken))
    if records.unconverted is None:
        return [iter_batches(broken)]
    return [iter_batches(broken), _iter_unconverted(records.unconverted)]


def _iter_unconverted(path: Path) -> BadRows:
    with pq.ParquetFile(path) as file:
        yield from rows_of_errors(file.iter_batches(batch_size=BATCH_ROWS, columns=[RECORD, ERRORS]))


def rows_of_errors(batches: Iterable[pa.RecordBatch]) -> BadRows:
    """Give the rows of batches of record numbers and lists of what kept these from being converted."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            rows = batch.slice(start, BATCH_ROWS)
            lists = rows.column(ERRORS)
            errors = lists.flatten()
            stated = {field.name: errors.field(field.name) for field in ERRORS_TYPE.value_type}
            stated["plug_in"] = pa.nulls(len(errors), pa.string())
            stated["is_warning"] = pa.repeat(False, len(errors))
            kind = _FAULTS_TYPE.value_type
            faults = pa.StructArray.from_arrays([stated[field.name] for field in kind], fields=list(kind))
            columns = [
                rows.column(RECORD),
                pa.repeat("convert", rows.num_rows),
                pa.nulls(rows.num_rows, pa.string()),
                as_lists(lengths_of(lists), faults),
            ]
            yield pa.record_batch(columns, schema=SCHEMA)


def join_rows(several: Sequence[BadRows]) -> BadRows:
    """Give the rows of several lists as one: a record is in it once, with all that is said of it in their order."""
    lists = [_Rest(each) for each in several]
    while ends := [rest.numbers[-1] for rest in lists if rest.has_numbered()]:
        # No list has more about records up to here than is at hand.
        yield from _joined([each for rest in lists for each in rest.take_to(min(ends))])
    for rest in lists:
        yield from rest.take_others()


class _Rest:
    """What is left of a list: the batch at hand, and those that follow.

    Attributes:
        numbers: Of the records at hand.
    """

    def __init__(self, batches: BadRows) -> None:
        self._batches = batches
        self._at_hand: pa.RecordBatch | None = None
        self.numbers = np.array([], np.int64)

    def has_numbered(self) -> bool:
        """Say whether rows with a record number follow, and have some at hand then."""
        while not len(self.numbers) and (self._at_hand is None or not self._at_hand.num_rows):
            self._at_hand = next(self._batches, None)
            if self._at_hand is None:
                return False
            self.numbers = self._at_hand.column("record").drop_null().to_numpy()
        return len(self.numbers) > 0

    def take_to(self, last: int) -> BadRows:
        """Give the rows at hand up to a record."""
        count = int(np.searchsorted(self.numbers, last, side="right"))
        if count and self._at_hand is not None:
            yield self._at_hand.slice(0, count)
            self._at_hand, self.numbers = self._at_hand.slice(count), self.numbers[count:]

    def take_others(self) -> BadRows:
        """Give the rows without a record number."""
        if self._at_hand is not None and self._at_hand.num_rows:
            yield self._at_hand
        yield from self._batches


def _joined(parts: list[pa.RecordBatch]) -> BadRows:
    if len(parts) == 1:
        yield parts[0]
        return
    rows = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    numbers = rows.column(0).to_numpy()
    order = np.argsort(numbers, kind="stable")
    _, firsts = np.unique(numbers[order], return_index=True)
    rows = rows.take(pa.array(order))
    lists = rows.column("errors")
    errors = as_lists(np.add.reduceat(lengths_of(lists), firsts), lists.flatten())
    heads = rows.take(pa.array(firsts))
    yield heads.set_column(SCHEMA.get_field_index("errors"), SCHEMA.field("errors"), errors)


def lengths_of(lists: pa.ListArray) -> np.ndarray:
    """Give how many values each list has."""
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False))


def as_lists(lengths: np.ndarray, values: pa.Array) -> pa.ListArray:
    """Part values into lists of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values).cast(pa.list_(values.type))
