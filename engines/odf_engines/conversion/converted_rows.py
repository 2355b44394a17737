"""Rows of a file, gone through converters one after the other: every row is a good one or among those that failed.

A value that failed is null for the converters that follow, which nulls pass; so all errors of a row come at once.

Source: clauses CONV-2 and CONV-4 in ``spec/conversion.md``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.conversion.call import ConverterCall
from odf_engines.conversion.contract import Converted, Converter, ConverterContext, Fault
from odf_engines.ingest.carriers import carrier_of, from_carrier, slice_field_of, to_carrier
from odf_engines.ingest.source_records import (
    ERRORS_TYPE,
    ROW_GROUP_ROWS,
    FieldError,
    typed_schema,
    value_name,
)
from odf_engines.validation.guarded_check import FAILED, FAULTS, as_fault_batch
from odf_engines.validation.plug_ins import load_plug_in, read_parameters
from odf_engines.validation.validated_rows import RowFile

__all__ = ["ConvertedRows", "convert", "make_converter", "make_converters"]


@dataclass(frozen=True, slots=True)
class ConvertedRows:
    """What converters made of rows.

    Attributes:
        path: The good rows, a file of typed records with the numbers that they had.
        schema: Their columns.
        bad_count: Rows that are not in it.
        iter_bad: Gives those by number, with all errors of each in the order of the declaration.
    """

    path: Path
    schema: pa.Schema
    bad_count: int
    iter_bad: Callable[[], Iterator[tuple[int, tuple[FieldError, ...]]]]


def make_converter(call: ConverterCall, schema: pa.Schema) -> Converter:
    """Make the converter of a call for rows of a schema.

    Raises:
        ParameterError: Its parameters do not fit the columns.
        BrokenPlugInError: It cannot be loaded.
    """
    kind: type[Converter] = load_plug_in(Converter, call.name, call.module, call.attribute)
    secret = None if call.secret is None else call.secret.encode()
    parameters = read_parameters(kind, msgspec.json.decode(call.parameters))
    return kind(parameters, ConverterContext(schema=schema, secret=secret))


def make_converters(
    calls: Sequence[ConverterCall], schema: pa.Schema, watch: Callable[[str], None] = lambda _name: None
) -> list[Converter]:
    """Make converters that follow each other; for the errors see ``make_converter``."""
    made: list[Converter] = []
    for call in calls:
        watch(call.name)
        made.append(make_converter(call, schema))
        schema = made[-1].schema
    return made


def convert(
    rows: RowFile,
    calls: Sequence[ConverterCall],
    scratch: Path,
    *,
    watch: Callable[[str], None] = lambda _name: None,
) -> ConvertedRows:
    """Let rows go through converters.

    Args:
        rows: Where they are.
        calls: The converters, in order; at least one.
        scratch: Folder for files.
        watch: Hears the name of each converter before it is called, and the empty text at the end.

    Raises:
        ParameterError, BrokenPlugInError: A converter cannot be made.
        UnsupportedError: One gives a column of a type that no slice can hold.
    """
    converters = make_converters(calls, rows.schema, watch)
    schema = pa.schema([slice_field_of(field) for field in converters[-1].schema])
    path, kept = scratch / "converted-rows.parquet", scratch / "converter-faults.parquet"
    bad_count = 0
    with (
        closing(pq.ParquetFile(rows.path)) as file,
        closing(_open(path, typed_schema(schema))) as good,
        closing(_open(kept, FAULTS)) as faults,
    ):
        for number, batch in _iter_batches(file, rows):
            converted, found = batch, []
            for position, (call, converter) in enumerate(zip(calls, converters, strict=True)):
                watch(call.name)
                converted, said = _convert(converter, position, converted, number)
                found += said
            told = pa.Table.from_batches(found, FAULTS).sort_by([("number", "ascending"), ("call", "ascending")])
            faults.write_table(told)
            is_bad = pc.is_in(number, told.column("number").combine_chunks())
            bad_count += pc.sum(is_bad).as_py() or 0
            good.write_batch(_typed(number, converted, schema).filter(pc.invert(is_bad)), ROW_GROUP_ROWS)
    watch("")
    return ConvertedRows(path, schema, bad_count, lambda: _iter_bad(kept, calls))


def _iter_batches(file: pq.ParquetFile, rows: RowFile) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    names = [value_name(index) for index in range(len(rows.schema))]
    for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS, columns=[rows.number, *names]):
        arrays = [
            from_carrier(from_carrier(batch.column(name), carrier_of(field.type)), field.type)
            for name, field in zip(names, rows.schema, strict=True)
        ]
        yield batch.column(rows.number), pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def _convert(
    converter: Converter, position: int, rows: pa.RecordBatch, numbers: pa.Array
) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """Let a converter convert some rows; those that make it raise are faults themselves, and null."""
    try:
        answer = converter.convert(rows) if rows.num_rows else Converted(converter.schema.empty_table().to_batches()[0])
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
        first, said = _convert(converter, position, rows.slice(0, middle), numbers.slice(0, middle))
        second, more = _convert(converter, position, rows.slice(middle), numbers.slice(middle))
        return pa.Table.from_batches([first, second]).combine_chunks().to_batches()[0], [*said, *more]


def _checked(
    converter: Converter, position: int, rows: pa.RecordBatch, numbers: pa.Array, answer: Converted
) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """Take an answer for what it is: as many rows, of the columns that were promised, and faults about them."""
    if answer.rows.num_rows != rows.num_rows or not answer.rows.schema.equals(converter.schema):
        raise ValueError(f"it gave {answer.rows.num_rows} rows for {rows.num_rows}, or other columns than it said")
    answer.rows.validate(full=True)
    table = pa.Table.from_batches([rows])
    said = []
    for fault in answer.faults:
        if fault.rows is None:
            raise ValueError("a fault of a converter is about rows")
        if len(fault.rows):
            said.append(as_fault_batch(numbers, position, fault, table))
    return answer.rows, said


def _typed(numbers: pa.Array, rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    values = [to_carrier(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(
        [numbers, pa.nulls(rows.num_rows, ERRORS_TYPE), *values], schema=typed_schema(schema)
    )


def _iter_bad(kept: Path, calls: Sequence[ConverterCall]) -> Iterator[tuple[int, tuple[FieldError, ...]]]:
    def lines() -> Iterator[dict[str, object]]:
        with closing(pq.ParquetFile(kept)) as file:
            for batch in file.iter_batches(batch_size=4096):
                yield from batch.to_pylist()

    for number, same in groupby(lines(), key=itemgetter("number")):
        yield number, tuple(_error(fault, calls) for fault in same)


def _error(fault: dict[str, object], calls: Sequence[ConverterCall]) -> FieldError:
    message, column, value, code, call = (fault[name] for name in ("message", "column", "value", "code", "call"))
    return FieldError(str(message), column, value, code=str(code), plug_in=calls[int(call)].name)  # type: ignore[arg-type, call-overload]


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # Read once, a few seconds later.
    return pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False, write_statistics=False)
