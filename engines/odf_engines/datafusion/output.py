"""What a query's result must be to become a slice, and its rows as the other implementation computes them.

Rows are numbered on top of the query, as they are there: sorts on which nothing depends are then left out of the plan.
Which columns may be null follows from the plan that runs, not from the query; a plan that gives no rows states its
columns only in a file.

Source: clauses ENGINE-12, GATE-8, FUSION-2, FUSION-6 and FUSION-7 in ``spec/extensions/engine-contract.md``; ODF
"Engine contract".
"""

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import DataFrameWriteOptions, col, functions, literal

from odf_engines.datafusion.context import query_errors, quoted
from odf_engines.errors import InvalidQueryError, LimitExceededError
from odf_engines.host.event_times import NoEventTimeError
from odf_engines.host.slices import slice_schema
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataSchema
from odf_protocol.schema_arrow import data_schema_of, rows_schema_of
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datafusion import DataFrame, SortExpr


_INSTANT = pa.timestamp("ms", "UTC")
_NARROW = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.uint32())


def in_slice_types(rows: "DataFrame", vocabulary: Vocabulary) -> "DataFrame":
    """Return the rows with every timestamp in milliseconds of UTC, and operations of narrower types widened."""
    columns = []
    for field in rows.schema():
        column = col(quoted(field.name))
        if pa.types.is_timestamp(field.type) and field.type != _INSTANT:
            column = column.cast(_INSTANT).alias(field.name)
        elif field.name == vocabulary.op and field.type in _NARROW:
            column = column.cast(pa.int32()).alias(field.name)
        columns.append(column)
    with query_errors():
        return rows.select(*columns)


def check_columns(result: pa.Schema, vocabulary: Vocabulary) -> None:
    """Check that a result, in the types of a slice, can have system columns put before it.

    Raises:
        InvalidQueryError: It has one of them already, or lacks one that only a query can give.
    """
    for name in (vocabulary.offset, vocabulary.system_time):
        if name in result.names:
            raise InvalidQueryError(f"the result has a column {name!r}, which the node adds: give it another name")
    if len(set(result.names)) != len(result.names):
        raise InvalidQueryError(f"the result has two columns of one name: {', '.join(result.names)}")
    if vocabulary.op in result.names:
        op = result.field(vocabulary.op)
        if op.type != pa.int32():
            raise InvalidQueryError(f"the column {op.name!r} has operations, expected INT, found {op.type}")
        if op.nullable:
            raise InvalidQueryError(f"the column {op.name!r} has operations and may be null here: coalesce it")
    if vocabulary.event_time not in result.names:
        times = [each.name for each in result if each.type in (_INSTANT, pa.date32())]
        raise NoEventTimeError(vocabulary.event_time, result.names, times)
    kind = result.field(vocabulary.event_time).type
    if kind not in (_INSTANT, pa.date32()):
        raise InvalidQueryError(f"the event time {vocabulary.event_time!r} is {kind}, expected a date or a timestamp")
    for field in result:
        if pa.types.is_null(field.type):
            raise InvalidQueryError(f"the column {field.name!r} has no type: cast its NULL to one")


def output_schema(result: pa.Schema, vocabulary: Vocabulary) -> pa.Schema:
    """Return the schema of slices of these columns, which ``check_columns`` passed.

    Raises:
        InvalidQueryError: A type that no slice can hold.
    """
    try:
        fields = data_schema_of(plain_schema(result)).fields
    except UnsupportedError as error:
        raise InvalidQueryError(str(error)) from error
    return slice_schema(fields, vocabulary)


def with_event_times(schema: pa.Schema, vocabulary: Vocabulary) -> pa.Schema:
    """Return the schema of slices of a dataset that begins here: every row has an event time (FUSION-14)."""
    position = schema.get_field_index(vocabulary.event_time)
    return schema.set(position, schema.field(position).with_nullable(False))


def as_declared(schema: pa.Schema, declared: DataSchema | None) -> pa.Schema:
    """Return the schema of a step's slice, in which those columns may be null that the dataset says may (FUSION-14).

    Args:
        schema: From ``output_schema``, as follows from the plan that ran, and so from what there was to read.
        declared: Of the dataset; None where it has none yet, or states other columns, which is for its owner to say.
    """
    if declared is None:
        return schema
    stated = rows_schema_of(declared)
    if stated.names != schema.names or any(one.type != other.type for one, other in zip(stated, schema, strict=True)):
        return schema
    return pa.schema([one.with_nullable(other.nullable) for one, other in zip(schema, stated, strict=True)])


def free_name(word: str, names: Collection[str]) -> str:
    """Return a name for a column of ours that none of a query's has."""
    name = f"__{word}"
    while name in names:
        name += "_"
    return name


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the same columns with views as the types that they are views of, and no unit that Parquet lacks."""
    return pa.schema([_plain(field) for field in schema])


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type)).remove_metadata()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    if types.is_time32(kind):
        return pa.time32("ms")
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_list(kind):
        return pa.list_(_plain(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_plain(kind.field(number)) for number in range(kind.num_fields)])
    return kind


class QueryOutput:
    """Rows of a query, computed as they are asked for.

    Args:
        rows: In the types of a slice, without the columns that a node adds.
        vocabulary: Of the output.
        folder: Existing folder for a file.
        is_ordered: Whether the plan gives the rows in one order. Otherwise they are ordered by all columns.

    Attributes:
        schema: Columns of the query.

    Raises:
        InvalidQueryError: The query fails on a value.
        MemoryError: Memory did not suffice.
    """

    schema: pa.Schema

    def __init__(self, rows: "DataFrame", vocabulary: Vocabulary, folder: Path, *, is_ordered: bool = True) -> None:

        self._op, self._offset = vocabulary.op, vocabulary.offset
        with query_errors():
            number = functions.row_number(order_by=[literal(None).sort(ascending=True, nulls_first=False)])
            numbered = rows.with_column(self._offset, number)
            if not is_ordered:
                # Numbers say nothing then; they stay, as which columns may be null follows from the plan.
                numbered = numbered.sort(*(_ascending(name) for name in rows.schema().names))
            batches = (each.to_pyarrow() for each in numbered.execute_stream())
            first = next(batches, None)
            found = _schema_in_file(numbered, folder / "columns.parquet") if first is None else first.schema
        self._batches = chain([] if first is None else [first], batches)
        self.schema = found.remove(found.get_field_index(self._offset)).remove_metadata()

    def iter_chunks(self, max_rows: int) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
        """Give the rows in order, and the operation of each: an append where the query says none.

        Raises:
            InvalidQueryError, MemoryError: As above.
            LimitExceededError: More rows than allowed.
        """
        count = 0
        with query_errors():
            for batch in self._batches:
                table = pa.Table.from_batches([batch]).drop_columns([self._offset])
                if (count := count + table.num_rows) > max_rows:
                    raise LimitExceededError("output_rows", allowed=max_rows, found=count)
                operations = np.zeros(table.num_rows, np.int64)
                if self._op in table.column_names:
                    operations = table.column(self._op).cast(pa.int64()).to_numpy()
                if table.num_rows:
                    yield table, operations


def _ascending(name: str) -> "SortExpr":
    return col(quoted(name)).sort(ascending=True, nulls_first=True)


def _schema_in_file(rows: "DataFrame", path: Path) -> pa.Schema:

    rows.write_parquet(path, write_options=DataFrameWriteOptions(single_file_output=True))
    return pq.read_schema(path)
