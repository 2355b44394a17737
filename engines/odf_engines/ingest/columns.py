"""The columns of rows that are to be merged: what the dataset's rules ask of them.

Source: ODF ingest, rules of the writer; spec/ingest.md ING-7.
"""

from dataclasses import dataclass

import pyarrow as pa

from odf_engines.errors import EngineError
from odf_engines.records.carriers import TIMESTAMP
from odf_engines.strategies.registry import strategy_of
from odf_protocol.events import MergeStrategy
from odf_protocol.vocabulary import Vocabulary

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)  # Source: ODF OperationType

OP = "op"
ORD = "ord"
"""The column with the place of a row in its source, ascending."""


class InvalidColumnsError(EngineError):
    """Rows have columns that the dataset's rules forbid or lack columns that they ask for."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of staged rows are.

    Attributes:
        schema: Names, slice types and nullability, in input order; the event time is among them.
        event_time: Index of the event time.
        op: Index of the operation, None if rows have none.
        keys: Indexes of the primary key.
        has_event_time: The source gave the event time column; otherwise it is all null.
    """

    schema: pa.Schema
    event_time: int
    op: int | None
    keys: tuple[int, ...]
    has_event_time: bool

    @property
    def data(self) -> tuple[int, ...]:
        """Indexes of all columns but the operation: what a row of a changelog is about."""
        return tuple(i for i in range(len(self.schema)) if i != self.op)


def columns_of(found: pa.Schema, merge: MergeStrategy, vocabulary: Vocabulary, known: pa.Schema | None) -> Columns:
    """Check the columns of rows to be merged, and add an event time if there is none.

    Raises:
        InvalidColumnsError: A reserved name, an event time that is no time, or a missing key column.
    """
    if taken := [name for name in found.names if name in _reserved_names(merge, vocabulary)]:
        raise InvalidColumnsError(
            f"column {taken[0]} has a name that is reserved for a system column; rename it in a preprocess step"
        )
    if len(set(found.names)) != len(found.names):
        raise InvalidColumnsError(f"two columns have the same name: {', '.join(found.names)}")
    schema, event_time = found, found.get_field_index(vocabulary.event_time)
    has_event_time = event_time >= 0
    if has_event_time:
        kind = found.field(event_time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
            raise InvalidColumnsError(
                f"column {vocabulary.event_time}: expected a date or a timestamp, found {kind};"
                " cast it in a preprocess step"
            )
    else:
        kind = known.field(vocabulary.event_time).type if known is not None else TIMESTAMP
        schema, event_time = found.append(pa.field(vocabulary.event_time, kind)), len(found)
    keys = _indexes_of(getattr(merge, "primary_key", ()), schema, "primary key")
    _indexes_of(getattr(merge, "compare_columns", None) or (), schema, "compare")
    op = schema.get_field_index(vocabulary.op)
    if strategy_of(merge).needs_operation and op < 0:
        raise InvalidColumnsError(f"a changelog needs the column {vocabulary.op} with the operation of each row")
    if op >= 0 and not pa.types.is_integer(schema.field(op).type):
        raise InvalidColumnsError(f"column {vocabulary.op}: expected a whole number, found {schema.field(op).type}")
    return Columns(schema, event_time, op if op >= 0 else None, keys, has_event_time)


def _indexes_of(names: tuple[str, ...], schema: pa.Schema, role: str) -> tuple[int, ...]:
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise InvalidColumnsError(
            f"{role} column {missing[0]} is not among the columns of the rows: {', '.join(schema.names)}"
        )
    return tuple(schema.get_field_index(name) for name in names)


def rename_reserved(schema: pa.Schema, merge: MergeStrategy, vocabulary: Vocabulary) -> pa.Schema:
    """Rename columns that are called like a system column: `offset` becomes `_offset`.

    Source: ODF reference ingest, sources without ODF schema and without preprocess step.
    """
    reserved = _reserved_names(merge, vocabulary)
    return pa.schema([field.with_name(f"_{field.name}") if field.name in reserved else field for field in schema])


def _reserved_names(merge: MergeStrategy, vocabulary: Vocabulary) -> set[str]:
    takes_op = strategy_of(merge).takes_operation
    return {vocabulary.offset, vocabulary.system_time} | (set() if takes_op else {vocabulary.op})
