"""Rows of a file, gone through converters one after the other: each is a good one, failed, or was left out.

A value that failed is null for the converters that follow, which nulls pass; so all errors of a row come at once. Only
where a converter selects among all rows they are written down on the way.

Source: clauses CONV-2, CONV-4 and CONV-7 in ``spec/conversion.md``.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.conversion.contract import Converter, ConverterContext, Selection
from odf_engines.conversion.stages import Stage, run_stage, select
from odf_engines.ingest_parts import ConverterCall
from odf_engines.records.carriers import slice_field_of
from odf_engines.records.source_records import FieldError
from odf_engines.stage_metrics import IngestStage, StageClock
from odf_engines.validation.plug_ins import load_plug_in, read_parameters
from odf_engines.validation.validated_rows import RowFile


@dataclass(frozen=True, slots=True)
class ConvertedRows:
    """What converters made of rows.

    Attributes:
        path: The good rows, a file of typed records with the numbers that they had.
        schema: Their columns.
        bad_count: Rows that failed.
        iter_bad: Gives those by number, with all errors of each in the order of the declaration.
        left_out: How many others are not in it.
        row_count: All that went through.
        failed: File of the rows that failed, in the same columns: what could not be converted is null.
    """

    path: Path
    schema: pa.Schema
    bad_count: int
    iter_bad: Callable[[], Iterator[tuple[int, tuple[FieldError, ...]]]]
    left_out: int = 0
    row_count: int = 0
    failed: Path | None = None


def make_converter(call: ConverterCall, schema: pa.Schema) -> Converter:
    """Make the converter of a call for rows of a schema.

    Raises:
        ParameterError: Its parameters do not fit the columns.
        ColumnsUnknownError: Those that it gives follow from a dataset that the call has no rows of.
        BrokenPlugInError: It cannot be loaded.
    """
    kind: type[Converter] = load_plug_in(Converter, call.name, call.module, call.attribute)
    secret = None if call.secret is None else call.secret.encode()
    parameters = read_parameters(kind, msgspec.json.decode(call.parameters))
    return kind(parameters, ConverterContext(schema=schema, secret=secret, rows=call.rows))


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
    clock: StageClock | None = None,
) -> ConvertedRows:
    """Let rows go through converters.

    Args:
        rows: Where they are.
        calls: The converters, in order; at least one.
        scratch: Folder for files.
        watch: Hears the name of each converter before it is called, and the empty text at the end.
        clock: Measures each converter.

    Raises:
        ParameterError, BrokenPlugInError: A converter cannot be made.
        FailedSelectionError: One that selects among all rows failed.
        UnsupportedError: One gives a column of a type that no slice can hold.
    """
    clock = clock or StageClock()
    converters = make_converters(calls, rows.schema, watch)
    with closing(pq.ParquetFile(rows.path)) as file:
        row_count = file.metadata.num_rows
    path = scratch / "converted-rows.parquet"
    bad, gone, left_out, kept = pa.array([], pa.int64()), pa.array([], pa.int64()), 0, []
    begins = 0
    for position, converter in enumerate(converters):
        if isinstance(converter, Selection):
            stage = Stage(scratch / f"to-select-{position}.parquet", converter.schema, begins, position)
            kept.append(scratch / f"converter-faults-{position}.parquet")
            bad = run_stage(stage, rows, converters, calls, kept[-1], bad=bad, gone=gone, watch=watch, clock=clock)
            rows, begins = RowFile(stage.path, rows.number, stage.schema), position
            watch(calls[position].name)
            with clock.measuring(IngestStage.CONVERT, calls[position].name, position) as sums:
                gone = select(converter, calls[position].name, rows, bad)
            sums.count(rows_out=-len(gone))
            left_out += len(gone)
    stage = Stage(path, converters[-1].schema, begins, len(converters), failed=scratch / "failed-rows.parquet")
    kept.append(scratch / "converter-faults.parquet")
    bad = run_stage(stage, rows, converters, calls, kept[-1], bad=bad, gone=gone, watch=watch, clock=clock)
    watch("")
    schema = pa.schema([slice_field_of(field) for field in stage.schema])
    failed = stage.failed if len(bad) else None
    return ConvertedRows(path, schema, len(bad), lambda: _iter_bad(kept, calls), left_out, row_count, failed)


def _iter_bad(kept: Sequence[Path], calls: Sequence[ConverterCall]) -> Iterator[tuple[int, tuple[FieldError, ...]]]:
    def lines(path: Path) -> Iterator[dict[str, object]]:
        with closing(pq.ParquetFile(path)) as file:
            for batch in file.iter_batches(batch_size=4096):
                yield from batch.to_pylist()

    merged = heapq.merge(*map(lines, kept), key=itemgetter("number"))
    for number, same in groupby(merged, key=itemgetter("number")):
        yield number, tuple(_error(fault, calls) for fault in same)


def _error(fault: dict[str, object], calls: Sequence[ConverterCall]) -> FieldError:
    message, column, value, code, call = (fault[name] for name in ("message", "column", "value", "code", "call"))
    return FieldError(str(message), column, value, code=str(code), plug_in=calls[int(call)].name)  # type: ignore[arg-type, call-overload]
