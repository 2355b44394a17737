"""Rows of a file, parted by validators into good and bad ones: every row is among one of them.

Validators that see single rows look at each subset of the file in turn; those that see whole batches get their columns
of all rows afterwards. What they find is kept on disk, and good rows are copied only where there are bad ones.

Source: clauses VALID-2 and VALID-4 in ``spec/validation.md``.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.ingest_parts import ValidatorCall
from odf_engines.records.carriers import carrier_of, from_carrier, one_array
from odf_engines.records.source_records import ROW_GROUP_ROWS, FieldError, value_name
from odf_engines.stage_metrics import IngestStage, StageClock
from odf_engines.validation.contract import Context, Validator
from odf_engines.validation.guarded_check import (
    FAULTS,
    BatchFault,
    WholeBatchFailedError,
    check_subset,
    check_whole,
)
from odf_engines.validation.plug_ins import make_validator


class FailedValidatorError(Exception):
    """A validator failed on the batch as a whole.

    Attributes:
        name: Of the validator.
        reason: What it raised.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"validator {name} failed: {reason}")


@dataclass(frozen=True, slots=True)
class RowFile:
    """Converted rows: a Parquet file with the number of each row, ascending, and its values in carrier types.

    Attributes:
        path: Of the file.
        number: Name of the column with the number.
        schema: Fields of the values, in slice types; field ``i`` is in the column ``v<i>``; one that is not
            there is null.
    """

    path: Path
    number: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """What validators said.

    Attributes:
        path: The good rows, a file like the one that was validated; the same where no row is bad.
        bad_count: Rows that are not in it.
        batch_faults: What is wrong with the batch as a whole.
        iter_bad: Gives the bad rows by number, with all errors and warnings of each in the order of the declaration.
        iter_warned: Gives the good rows with warnings, in the same way.
        row_count: All that were looked at.
    """

    path: Path
    bad_count: int
    batch_faults: tuple[str, ...]
    iter_bad: Callable[[], Iterator[tuple[int, tuple[FieldError, ...]]]]
    iter_warned: Callable[[], Iterator[tuple[int, tuple[FieldError, ...]]]]
    row_count: int = 0


def validate(
    rows: RowFile,
    calls: Sequence[ValidatorCall],
    scratch: Path,
    *,
    now_ms: int,
    watch: Callable[[str], None] = lambda _name: None,
    clock: StageClock | None = None,
) -> ValidatedRows:
    """Let validators look at rows.

    Args:
        rows: Where they are.
        calls: The validators, in order.
        scratch: Folder for files.
        now_ms: System time of the ingest.
        watch: Hears the name of each validator before it is called, and the empty text at the end.
        clock: Measures each validator.

    Raises:
        ParameterError, BrokenPlugInError: A validator cannot be made.
        FailedValidatorError: One failed on the batch as a whole.
    """
    validators = []
    for call in calls:
        watch(call.name)
        validators.append(make_validator(call, Context(schema=rows.schema, now_ms=now_ms, rows=call.rows)))
    run = _Run(rows, calls, validators, scratch, watch, clock or StageClock())
    try:
        run.check_subsets()
        run.check_whole_batch()
    finally:
        run.close()
    watch("")
    return run.result()


class _Run:
    """One validation: where faults are kept meanwhile."""

    def __init__(
        self,
        rows: RowFile,
        calls: Sequence[ValidatorCall],
        validators: Sequence[Validator],
        scratch: Path,
        watch: Callable[[str], None],
        clock: StageClock,
    ) -> None:
        self._rows, self._calls, self._validators, self._watch = rows, calls, validators, watch
        self._clock = clock
        self._scratch = scratch
        self._kept = scratch / "row-faults.parquet"
        self._writer = pq.ParquetWriter(self._kept, FAULTS, compression="lz4")
        self._whole: list[pa.RecordBatch] = []
        self._batch_faults: list[BatchFault] = []
        self._bad = [np.array([], np.int64)]
        with closing(pq.ParquetFile(rows.path)) as file:
            self._names, self._row_count = set(file.schema_arrow.names), file.metadata.num_rows

    def close(self) -> None:
        self._writer.close()

    def check_subsets(self) -> None:
        """Ask the validators that see single rows, in one pass."""
        asked = [(call, each) for call, each in enumerate(self._validators) if not each.sees_whole_batch]
        if not asked:
            return
        with closing(pq.ParquetFile(self._rows.path)) as file:
            names = [name for name in self._needed(call for call, _ in asked) if name in self._names]
            for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS, columns=[self._rows.number, *names]):
                numbers = batch.column(0)
                found: list[pa.RecordBatch] = []
                for call, validator in asked:
                    self._watch(self._calls[call].name)
                    with self._measuring(call, len(numbers)):
                        for fault in check_subset(validator, call, self._table(call, batch), numbers):
                            self._note(call, fault, found)
                if found:
                    faults = pa.Table.from_batches(found).sort_by([("number", "ascending"), ("call", "ascending")])
                    self._writer.write_table(faults)

    def check_whole_batch(self) -> None:
        """Ask the validators that see all rows at once."""
        for call, validator in enumerate(self._validators):
            if not validator.sees_whole_batch:
                continue
            names = [name for name in self._needed([call]) if name in self._names]
            with self._measuring(call, self._row_count):
                rows = pq.read_table(self._rows.path, columns=[self._rows.number, *names]).combine_chunks()
                numbers = one_array(rows.column(0))
                values = pa.record_batch([one_array(each) for each in rows.columns], names=rows.column_names)
                table = self._table(call, values)
                self._watch(self._calls[call].name)
                try:
                    for fault in check_whole(validator, call, table, numbers):
                        self._note(call, fault, self._whole)
                except WholeBatchFailedError as error:
                    raise FailedValidatorError(self._calls[call].name, str(error)) from error

    def result(self) -> ValidatedRows:
        """Part the rows."""
        bad = np.unique(np.concatenate(self._bad))
        path = self._rows.path if not len(bad) else self._copy_good(bad)
        whole = pa.Table.from_batches(self._whole, FAULTS).sort_by("number")

        def iter_rows(*, are_bad: bool) -> Iterator[tuple[int, tuple[FieldError, ...]]]:
            merged = heapq.merge(_iter_faults(self._iter_kept()), _iter_faults([whole]), key=itemgetter("number"))
            wanted = iter(bad.tolist())
            next_bad = next(wanted, None)
            for number, faults in groupby(merged, key=itemgetter("number")):
                while next_bad is not None and next_bad < number:
                    next_bad = next(wanted, None)
                if (number == next_bad) == are_bad:
                    yield number, tuple(self._error(each) for each in sorted(faults, key=itemgetter("call")))

        return ValidatedRows(
            path,
            len(bad),
            tuple(f"{self._calls[each.call].name}: {each.message}" for each in self._batch_faults),
            lambda: iter_rows(are_bad=True),
            lambda: iter_rows(are_bad=False),
            self._row_count,
        )

    @contextmanager
    def _measuring(self, call: int, row_count: int) -> Iterator[None]:
        """Measure a look of a validator at some rows, and count those that it finds bad."""
        before = len(self._bad)
        with self._clock.measuring(IngestStage.VALIDATE, self._calls[call].name, call) as sums:
            yield
        found = self._bad[before:]
        bad_rows = len(np.unique(np.concatenate(found))) if found else 0
        sums.count(rows_in=row_count, rows_out=row_count - bad_rows, bad_rows=bad_rows)

    def _note(self, call: int, fault: pa.RecordBatch | BatchFault, found: list[pa.RecordBatch]) -> None:
        is_warning = self._calls[call].is_warning
        if isinstance(fault, BatchFault):
            if not is_warning:
                self._batch_faults.append(fault)
            return
        found.append(fault)
        if not is_warning:
            self._bad.append(np.unique(fault.column(0).to_numpy()))

    def _needed(self, calls: Iterable[int]) -> list[str]:
        """List the columns of the file that some validators read."""
        return list(dict.fromkeys(self._place(name) for call in calls for name in self._column_names(call)))

    def _column_names(self, call: int) -> tuple[str, ...]:
        return self._validators[call].column_names

    def _place(self, name: str) -> str:
        return value_name(self._rows.schema.get_field_index(name))

    def _table(self, call: int, batch: pa.RecordBatch) -> pa.Table:
        """Take the columns that a validator reads, in the types of the schema."""
        names, arrays = [], []
        for name in dict.fromkeys(self._column_names(call)):
            place = self._place(name)
            kind = self._rows.schema.field(name).type
            if place in self._names:
                array = from_carrier(from_carrier(batch.column(place), carrier_of(kind)), kind)
            else:
                array = pa.nulls(batch.num_rows, kind)
            names.append(name)
            arrays.append(array)
        if not arrays:
            return pa.Table.from_batches([batch]).select([])  # which has as many rows
        return pa.table(arrays, names=names)

    def _copy_good(self, bad: np.ndarray) -> Path:
        path = self._scratch / "good-rows.parquet"
        bad_numbers = pa.array(bad)
        with closing(pq.ParquetFile(self._rows.path)) as file:
            # Read once, a few seconds later, as the file it is made of.
            writer = pq.ParquetWriter(
                path, file.schema_arrow, compression="lz4", use_dictionary=False, write_statistics=False
            )
            with closing(writer):
                for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                    is_bad = pc.is_in(batch.column(self._rows.number), bad_numbers)
                    writer.write_batch(batch.filter(pc.invert(is_bad)), ROW_GROUP_ROWS)
        return path

    def _iter_kept(self) -> Iterator[pa.RecordBatch]:
        with closing(pq.ParquetFile(self._kept)) as file:
            yield from file.iter_batches(batch_size=ROW_GROUP_ROWS)

    def _error(self, fault: dict[str, Any]) -> FieldError:
        call = self._calls[fault["call"]]
        return FieldError(
            fault["message"],
            fault["column"],
            fault["value"],
            code=fault["code"],
            plug_in=call.name,
            is_warning=call.is_warning,
        )


def _iter_faults(batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for start in range(0, batch.num_rows, 4096):
            yield from batch.slice(start, 4096).to_pylist()
