"""Slices as files: the encoding of each column, and the output of a transform written as one.

Source: ODF "Data Slices"; Parquet "Encodings"; clause ENGINE-12; MAP-7 in ``spec/extensions/changelog-maps.md``.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.errors import InvalidQueryError
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataField, DataSchema
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.vocabulary import Vocabulary

_INSTANT = pa.timestamp("ms", "UTC")
_PER_MS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}


def slice_schema(fields: Iterable[DataField], vocabulary: Vocabulary) -> pa.Schema:
    """Return the schema of the slices of a transform: system columns, event time, then the query's columns in order.

    Raises:
        InvalidQueryError: A type that no slice can hold.
    """
    try:
        arrow = arrow_schema_of(DataSchema(fields=tuple(fields)))
    except UnsupportedError as error:
        raise InvalidQueryError(str(error)) from error
    own = (vocabulary.op, vocabulary.event_time)
    return pa.schema(
        [
            pa.field(vocabulary.offset, pa.int64(), nullable=False),
            pa.field(vocabulary.op, pa.int32(), nullable=False),
            pa.field(vocabulary.system_time, _INSTANT, nullable=False),
            arrow.field(vocabulary.event_time),
            *(field for field in arrow if field.name not in own),
        ]
    ).remove_metadata()


def write_slice(
    pieces: Iterable[tuple[pa.Table, npt.NDArray[np.int64]]],
    schema: pa.Schema,
    path: Path,
    *,
    next_offset: int,
    system_time_ms: int,
) -> int:
    """Write rows as one Parquet file, piece by piece; no file without rows.

    Args:
        pieces: Columns of the query under their names, and the operation of each row.
        schema: From ``output_schema``.
        path: Does not exist yet.
        next_offset: Of the first row.
        system_time_ms: Of every row.

    Returns:
        The number of rows.

    Raises:
        InvalidQueryError: A row without an event time, or another value that the schema demands; or a cell that holds
            no value of its column's type.
    """
    writer: pq.ParquetWriter | None = None
    count = 0
    try:
        for rows, operations in pieces:
            writer = writer or open_slice_file(path, schema)
            first = next_offset + count
            event_time = schema.field(3)
            if not event_time.nullable and rows.column(event_time.name).null_count:
                raise InvalidQueryError(
                    f"a row of the result has no {event_time.name}; give it one, for a group without rows as in "
                    f"coalesce(max({event_time.name}), TIMESTAMP '1970-01-01 00:00:00')"
                )
            if found := [
                each.name for each in list(schema)[4:] if not each.nullable and rows.column(each.name).null_count
            ]:
                raise InvalidQueryError(
                    f"a row of the result has no {found[0]}, and the schema of the dataset says that every row has "
                    f"one; give it a value, as in coalesce({found[0]}, ...)"
                )
            arrays = [
                pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64)),
                pa.array(operations.astype(np.int32)),
                pa.array(np.full(rows.num_rows, system_time_ms, dtype=np.int64)).cast(_INSTANT),
                *(_as_in_slice(rows.column(field.name).combine_chunks(), field.type) for field in list(schema)[3:]),
            ]
            _check_values(schema, arrays)
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += rows.num_rows
    finally:
        if writer is not None:
            writer.close()
    return count


def _check_values(schema: pa.Schema, columns: Sequence[pa.Array]) -> None:
    """Reject what is no value of its column's type: text made of bytes that are none (ROWS-8)."""
    for name, column in zip(schema.names, columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidQueryError(f"column {name} of the result holds what is no {column.type}: {error}") from error


def _as_in_slice(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give a column as Spark wrote it the type it has in a slice; what is finer than a millisecond goes to the past."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if column.type == kind:
        return column
    if pa.types.is_timestamp(kind):
        times, part = _PER_MS[column.type.unit]
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
        return pa.array(np.floor_divide(numbers, part) * times, mask=is_null).cast(kind)
    if pa.types.is_list(kind):
        # Offsets and values of a sliced list only fit together after a copy.
        column = pa.concat_arrays([column.slice(0, 0), column])
        values = _as_in_slice(column.values, kind.value_type)
        return pa.ListArray.from_arrays(
            column.offsets, values, type=kind, mask=column.is_null() if column.null_count else None
        )
    if pa.types.is_struct(kind):
        parts = [_as_in_slice(column.field(index), kind.field(index).type) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    return column.cast(kind)


def open_slice_file(target: Path | BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file for the rows of a slice; a path that does not exist yet, or an open file.

    Offsets, times and other whole numbers are stored as differences, and only text as a dictionary: a third of the
    processor time of trying a dictionary for every column, and half of the bytes.
    """
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    return pq.ParquetWriter(
        target,
        schema,
        version="2.6",
        compression="snappy",
        store_schema=True,
        use_dictionary=[path for path, kind in leaves if _is_text(kind)],
        column_encoding={path: "DELTA_BINARY_PACKED" for path, kind in leaves if _is_whole_number(kind)},
    )


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Give the columns of values that a column is stored as, by the names that Parquet has for them."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def _is_whole_number(kind: pa.DataType) -> bool:
    # What Parquet holds in 32 or 64 bits.
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not pa.types.is_duration(kind)
