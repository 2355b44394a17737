"""Read a Parquet file, or an Arrow stream, into records of carrier types.

Both have types, so there is nothing to parse: columns are taken as they are, or cast to the declared type where no
value changes. A value that does not fit, or a null in a required column, sends its row to quarantine, where the row
stands as JSON because a columnar file has no text to keep.

Source: ODF ReadStepParquet; spec/ingest.md ING-3.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.columnar_files import ArrowStream, open_columns
from odf_engines.ingest.json_records import split_object
from odf_engines.ingest.source_schema import check_columns, check_distinct
from odf_engines.progress import report_count
from odf_engines.records.carriers import TIMESTAMP, carrier_of, slice_field_of, to_carrier
from odf_engines.records.plain_layouts import plain_layout
from odf_engines.records.source_records import (
    ERRORS_TYPE,
    MISFIT,
    NULL,
    RECORD,
    ROW_GROUP_ROWS,
    FieldError,
    OriginalRecord,
    SourceRecords,
    split_each,
    value_name,
)
from odf_protocol.cell_values import cell_value
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_FIRST_AND_LAST = (Timestamp.parse("0001-01-01T00:00:00Z"), Timestamp.parse("9999-12-31T23:59:59.999Z"))
_DAY_S = 86_400
_AT_ONCE = 256  # guess: so many are converted again where one of them does not fit

Broken = dict[int, tuple[FieldError, ...]]


def read_parquet(
    source: Path, source_name: str, declared: pa.Schema | None, vocabulary: Vocabulary | None, records_path: Path
) -> tuple[SourceRecords, pa.Schema]:
    """Copy the rows of a file of typed columns, cast to the declared types.

    Raises:
        InvalidSourceError: Neither Parquet nor an Arrow stream, or its columns cannot become the declared ones.
        UnsupportedError: A type no slice can hold.
    """
    with open_columns(source, source_name) as file:
        found = file.schema_arrow
        check_distinct(found.names, source_name)
        if declared is not None:
            check_columns(found.names, declared, source_name)
        target = declared if declared is not None else _adapted(found, vocabulary)
        _check_castable(found, target, source_name)
        broken: Broken = {}
        count = _copy_rows(file, target, records_path, broken)
    originals = _originals_of(source, source_name)
    names = tuple(target.names)
    return SourceRecords(records_path, names, count, broken, originals, split=split_each(split_object)), target


def _adapted(found: pa.Schema, vocabulary: Vocabulary | None) -> pa.Schema:
    fields = [slice_field_of(field) for field in found]
    index = -1 if vocabulary is None else found.get_field_index(vocabulary.event_time)
    if index >= 0 and (pa.types.is_integer(found.field(index).type) or pa.types.is_string(fields[index].type)):
        # Integers are UNIX seconds.  Source: ODF reference ingest, sources without schema
        fields[index] = fields[index].with_type(TIMESTAMP)
    return pa.schema(fields)


def _check_castable(found: pa.Schema, target: pa.Schema, source_name: str) -> None:
    for field in target:
        have = found.field(field.name).type
        try:
            _cast(pa.array([], have), field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InvalidSourceError(
                source_name, f"column {field.name}: expected {field.type}, found {have}, which cannot become it"
            ) from error


def _copy_rows(file: pq.ParquetFile | ArrowStream, target: pa.Schema, records_path: Path, broken: Broken) -> int:
    fields = [pa.field(RECORD, pa.int64(), nullable=False), pa.field("errors", ERRORS_TYPE)]
    fields += [pa.field(value_name(i), carrier_of(field.type)) for i, field in enumerate(target)]
    schema = pa.schema(fields)
    number = 0
    with pq.ParquetWriter(records_path, schema, compression="lz4", write_statistics=False) as writer:
        for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS, columns=target.names):
            columns = [_convert(batch.column(field.name), field, number + 1, broken) for field in target]
            records = pa.array(np.arange(number + 1, number + 1 + batch.num_rows), pa.int64())
            errors = pa.nulls(batch.num_rows, ERRORS_TYPE)
            rows = pa.record_batch([records, errors, *columns], schema=schema)
            bad = [i for i in range(number + 1, number + 1 + batch.num_rows) if i in broken] if broken else []
            if bad:
                rows = rows.filter(pc.invert(pc.is_in(records, pa.array(bad, pa.int64()))))
            writer.write_batch(rows, ROW_GROUP_ROWS)
            number += batch.num_rows
            report_count(number)
    return number


def _convert(column: pa.Array, field: pa.Field, first_record: int, broken: Broken) -> pa.Array:
    try:
        converted = _cast_valid(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        converted = _convert_each(column, field, first_record, broken)
    if not field.nullable and column.null_count:
        for row in pc.indices_nonzero(column.is_null()).to_pylist():
            _note(
                broken,
                first_record + row,
                FieldError("null in a required column", field.name, None, _name(field), NULL),
            )
    return converted


def _convert_each(column: pa.Array, field: pa.Field, first_record: int, broken: Broken) -> pa.Array:
    """Convert as many at once as have no value that does not fit: most files have few."""
    converted = []
    for first in range(0, len(column), _AT_ONCE):
        some = _copied(column.slice(first, _AT_ONCE))
        try:
            converted.append(_cast_valid(some, field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            converted += _convert_singly(some, field, first_record + first, broken)
    return pa.concat_arrays(converted)


def _convert_singly(column: pa.Array, field: pa.Field, first_record: int, broken: Broken) -> Iterator[pa.Array]:
    for row in range(len(column)):
        one = _copied(column.slice(row, 1))
        try:
            yield _cast_valid(one, field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            yield pa.nulls(1, carrier_of(field.type))
            shown = str(cell_value(one[0]))
            _note(
                broken, first_record + row, FieldError("does not fit the type", field.name, shown, _name(field), MISFIT)
            )


def _copied(column: pa.Array) -> pa.Array:
    """Give a part of a column that has its own values alone: a slice of a list, or a dictionary, has those of all."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return pa.concat_arrays([column.slice(0, 0), column])


def _cast_valid(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values that are of their own type: a file may have bytes for text, or a time after the end of the day."""
    column.validate(full=True)
    converted = _cast(plain_layout(column), target)
    if _has_far_times(converted):
        raise pa.ArrowInvalid("a year before 1 or after 9999")
    return converted


def _has_far_times(column: pa.Array) -> bool:
    """Say whether a column of a carrier type has a time that RFC 3339 has no form for, as no text has (ING-4)."""
    types = pa.types
    if types.is_struct(column.type):
        return any(map(_has_far_times, column.flatten()))
    if types.is_list(column.type):
        return _has_far_times(column.flatten())
    if not (types.is_timestamp(column.type) or types.is_date32(column.type)):
        return False
    is_time = types.is_timestamp(column.type)
    first, last = (each.unix_ms if is_time else each.seconds // _DAY_S for each in _FIRST_AND_LAST)
    extremes = pc.min_max(column.cast(pa.int64() if is_time else pa.int32())).as_py()
    return extremes["min"] is not None and not first <= extremes["min"] <= extremes["max"] <= last


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_integer(column.type) and pa.types.is_timestamp(target):
        return to_carrier(column.cast(pa.int64()).cast(pa.timestamp("s", "UTC")), target)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text and not (pa.types.is_string(target) or pa.types.is_timestamp(target)):
        # Arrow's parsers accept other texts than ours do; whoever needs this can cast in a preprocess step.
        raise pa.ArrowInvalid("text is not converted")
    return to_carrier(column, target)


def _note(broken: Broken, record: int, error: FieldError) -> None:
    broken[record] = (*broken.get(record, ()), error)


def _name(field: pa.Field) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _originals_of(source: Path, source_name: str) -> Callable[[Iterable[int]], Iterator[OriginalRecord]]:
    def find_originals(numbers: Iterable[int]) -> Iterator[OriginalRecord]:
        wanted = iter(numbers)
        number = next(wanted, None)
        first = 1
        with open_columns(source, source_name) as file:
            for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                while number is not None and number < first + batch.num_rows:
                    row = {name: cell_value(batch.column(name)[number - first]) for name in batch.schema.names}
                    yield OriginalRecord(number, None, json.dumps(row, ensure_ascii=False).encode())
                    number = next(wanted, None)
                if number is None:
                    return
                first += batch.num_rows

    return find_originals
