"""Converters that follow each other, over rows in files; and those that select among all rows, between them.

Source: clauses CONV-2, CONV-4 and CONV-7 in ``spec/conversion.md``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.conversion.contract import Converted, Converter, Fault, Selection
from odf_engines.ingest_parts import ConverterCall
from odf_engines.records.carriers import carrier_of, from_carrier, slice_field_of, slice_type_of, to_carrier
from odf_engines.records.source_records import ERRORS_TYPE, ROW_GROUP_ROWS, typed_schema, value_name
from odf_engines.stage_metrics import IngestStage, StageClock
from odf_engines.validation.guarded_check import FAILED, FAULTS, as_fault_batch
from odf_engines.validation.running_name import CONVERTER
from odf_engines.validation.validated_rows import RowFile


class FailedSelectionError(Exception):
    """A converter that selects among all rows raised an error, or gave an answer that is none."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{CONVERTER} {name} failed: {reason}")


@dataclass(frozen=True, slots=True)
class Stage:
    """Some converters that follow each other, and the file of what they make.

    Attributes:
        path: Of the file.
        schema: Of its values.
        begins: Position of the first converter.
        ends: Behind the last.
        failed: File for rows that failed, where they are not in the other one; else they go on, to collect errors.
    """

    path: Path
    schema: pa.Schema
    begins: int
    ends: int
    failed: Path | None = None


def run_stage(
    stage: Stage,
    rows: RowFile,
    converters: Sequence[Converter],
    calls: Sequence[ConverterCall],
    kept: Path,
    *,
    bad: pa.Array,
    gone: pa.Array,
    watch: Callable[[str], None],
    clock: StageClock,
) -> pa.Array:
    """Let rows go through one stage.

    Args:
        stage: Which.
        rows: What the stage before made.
        converters: All of them.
        calls: Likewise.
        kept: File for what is wrong with rows.
        bad: Numbers of the rows that failed before.
        gone: Numbers of those that are left out from here on.
        watch: See ``convert``.
        clock: Measures each converter.

    Returns:
        Numbers of all rows that failed so far, ascending.
    """
    failed, schema = [bad], pa.schema([slice_field_of(field) for field in stage.schema])
    with (
        closing(pq.ParquetFile(rows.path)) as file,
        closing(_open(stage.path, typed_schema(schema))) as made,
        closing(_open(kept, FAULTS)) as faults,
        nullcontext() if stage.failed is None else closing(_open(stage.failed, typed_schema(schema))) as left,
    ):
        for all_numbers, all_rows in _iter_batches(file, rows):
            stays = pc.invert(pc.is_in(all_numbers, gone))
            number, converted = all_numbers.filter(stays), all_rows.filter(stays)
            found: list[pa.RecordBatch] = []
            for position in range(stage.begins, stage.ends):
                watch(calls[position].name)
                with clock.measuring(IngestStage.CONVERT, calls[position].name, position) as sums:
                    converted, stated = _convert(converters[position], position, converted, number)
                bad_rows = len(np.unique(np.concatenate([each.column(0) for each in stated]))) if stated else 0
                sums.count(rows_in=len(number), rows_out=len(number) - bad_rows, bad_rows=bad_rows)
                found += stated
            reported = pa.Table.from_batches(found, FAULTS).sort_by([("number", "ascending"), ("call", "ascending")])
            faults.write_table(reported)
            failed.append(reported.column("number").combine_chunks().unique())
            typed = _typed(number, converted, schema)
            if left is not None:
                is_bad = pc.is_in(number, pa.concat_arrays([bad, failed[-1]]))
                left.write_batch(typed.filter(is_bad), ROW_GROUP_ROWS)
                typed = typed.filter(pc.invert(is_bad))
            made.write_batch(typed, ROW_GROUP_ROWS)
    return pa.array(np.unique(pa.concat_arrays(failed).to_numpy(zero_copy_only=False)))


def select(selection: Selection, name: str, rows: RowFile, bad: pa.Array) -> pa.Array:
    """Ask which rows are left out, of those without an error; give their numbers.

    Raises:
        FailedSelectionError: See ``convert``.
    """
    asked, schema = selection.column_names, rows.schema
    places = [value_name(schema.get_field_index(each)) for each in asked]
    table = pq.read_table(rows.path, columns=[rows.number, *places])
    table = table.filter(pc.invert(pc.is_in(table.column(0), bad)))
    arrays = [
        _as_given(table.column(place).combine_chunks(), schema.field(each).type)
        for place, each in zip(places, asked, strict=True)
    ]
    try:
        answer = selection.leave_out(pa.table(arrays, names=[*asked])).to_numpy(zero_copy_only=False)
        # Rejects positions that are not there: negative ones itself, higher ones as it is too long for the numbers.
        gone = np.bincount(answer, minlength=table.num_rows) > 0
        return table.column(0).combine_chunks().filter(pa.array(gone))
    except MemoryError:
        raise
    except Exception as error:
        raise FailedSelectionError(name, f"{type(error).__name__}: {error}") from error


def _iter_batches(file: pq.ParquetFile, rows: RowFile) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    names = [value_name(index) for index in range(len(rows.schema))]
    for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS, columns=[rows.number, *names]):
        arrays = [_as_given(batch.column(name), field.type) for name, field in zip(names, rows.schema, strict=True)]
        yield batch.column(rows.number), pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def _as_given(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give values of a file in the type that a converter said."""
    of_slices = slice_type_of(kind)
    found = from_carrier(from_carrier(column, carrier_of(of_slices)), of_slices)
    return found if found.type == kind else found.cast(kind)


def _convert(
    converter: Converter, position: int, rows: pa.RecordBatch, numbers: pa.Array
) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """Let a converter convert some rows; those that make it raise are faults themselves, and null."""
    try:
        answer = (
            converter.convert(rows)
            if rows.num_rows
            else Converted(pa.RecordBatch.from_pylist([], schema=converter.schema))
        )
        return _checked(converter, position, rows, numbers, answer)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - code of others
        if rows.num_rows <= 1:
            message = f"the converter failed: {type(error).__name__}: {error}"
            fault = Fault(code=FAILED, message=message, rows=pa.array([0]))
            nothing = [pa.nulls(rows.num_rows, field.type) for field in converter.schema]
            empty = pa.RecordBatch.from_arrays(nothing, schema=converter.schema)
            return empty, [as_fault_batch(numbers, position, fault)]
        middle = rows.num_rows // 2
        first, stated = _convert(converter, position, rows.slice(0, middle), numbers.slice(0, middle))
        second, more = _convert(converter, position, rows.slice(middle), numbers.slice(middle))
        return pa.Table.from_batches([first, second]).combine_chunks().to_batches()[0], [*stated, *more]


def _checked(
    converter: Converter, position: int, rows: pa.RecordBatch, numbers: pa.Array, answer: Converted
) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """Take an answer for what it is: as many rows, of the columns that were promised, and faults about them."""
    if answer.rows.num_rows != rows.num_rows or not answer.rows.schema.equals(converter.schema):
        raise ValueError(f"it gave {answer.rows.num_rows} rows for {rows.num_rows}, or other columns than it said")
    answer.rows.validate(full=True)
    table = pa.Table.from_batches([rows])
    stated = []
    for fault in answer.faults:
        if fault.rows is None:
            raise ValueError("a fault of a converter is about rows")
        if len(fault.rows):
            stated.append(as_fault_batch(numbers, position, fault, table))
    return answer.rows, stated


def _typed(numbers: pa.Array, rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    values = [to_carrier(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(
        [numbers, pa.nulls(rows.num_rows, ERRORS_TYPE), *values], schema=typed_schema(schema)
    )


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # Read once, a few seconds later.
    return pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False, write_statistics=False)
