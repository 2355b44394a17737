"""Columns of datasets: what readers see, and what a writer gives.

Source: clauses SPARKTABLE-3, SPARKTABLE-8 and SPARKTABLE-9 in ``spec/plug-ins/spark-tables.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from odf_engines.contract import ReferencedRows
from odf_engines.ingest.slice_writer import slice_schema_of
from odf_node.errors import UsageError
from odf_node.ingest.manifest_check import find_row_columns, list_converters
from odf_node.ingest.push_sources import ARROW_STREAM, choose_push_source, list_media_types
from odf_node.records.datasets import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import DataSchema, DataType, DataTypeOption, MergeStrategyChangelogStream, SetAttachments
from odf_protocol.manifest.errors import At
from odf_protocol.schema_arrow import data_schema_of, rows_schema_of
from odf_protocol.schema_spark import quote_spark_name, spark_type_of


def columns_before_rows(view: DatasetView) -> DataSchema | None:
    """Say which columns a dataset will have, where its sources declare them; None: its first rows will tell."""
    for source in (*view.push_sources.values(), view.polling_source):
        if source is None:
            continue
        columns = find_row_columns(source, view.vocabulary, list_converters(_attachments(view)), At(), _unknown)
        if columns is not None:
            return data_schema_of(slice_schema_of(columns, view.vocabulary, op_is_nullable=False))
    return None


def data_columns(columns: pa.Schema, view: DatasetView) -> pa.Schema:
    """Give the columns of current rows: the event time and the data."""
    known = view.vocabulary
    return pa.schema([each for each in columns if each.name not in (known.offset, known.op, known.system_time)])


def data_schema(schema: DataSchema, view: DatasetView) -> DataSchema:
    """Give the same of a schema of blocks."""
    known = view.vocabulary
    kept = tuple(each for each in schema.fields if each.name not in (known.offset, known.op, known.system_time))
    return DataSchema(fields=kept)


@dataclass(frozen=True, slots=True)
class WrittenColumns:
    """What a writer gives.

    Attributes:
        schema: The columns and their types.
        optional: Those that may be missing: the event time, where the push source declares no columns.
    """

    schema: DataSchema
    optional: frozenset[str]


def written_columns(record: DatasetRecord, view: DatasetView) -> WrittenColumns:
    """Give the columns that a writer has to give.

    Raises:
        UsageError: The dataset takes no rows from Spark: what is wrong, and what to do.
    """
    source = choose_push_source(record, view, None)
    if ARROW_STREAM not in list_media_types(view, source):
        kind = type(source.read).__name__.removeprefix("ReadStep")
        raise UsageError(
            f"'{record.name}' reads {kind} as it is declared; Spark writes into a push source that reads Parquet, or "
            "declares its columns for CSV or JSON in UTF-8"
        )
    known = None if view.schema is None else rows_schema_of(view.schema)
    columns = find_row_columns(source, view.vocabulary, list_converters(_attachments(view)), At(), _unknown, known)
    schema = view.schema or columns_before_rows(view)
    if schema is None:
        raise UsageError(
            f"'{record.name}' has no columns yet: declare them in its push source (read: schema), or write its first "
            "rows with 'odf-node ingest'"
        )
    left_out = {view.vocabulary.offset, view.vocabulary.system_time}
    if not isinstance(source.merge, MergeStrategyChangelogStream):
        left_out.add(view.vocabulary.op)
    if columns is not None and not columns.has_event_time:
        left_out.add(view.vocabulary.event_time)
    event_time = view.vocabulary.event_time
    # Of a row without an event time it is that of the write.
    kept = tuple(
        replace(each, type=_optional(each.type)) if each.name == event_time else each
        for each in schema.fields
        if each.name not in left_out
    )
    return WrittenColumns(DataSchema(fields=kept), frozenset({event_time} if columns is None else ()))


def describe_difference(expected: WrittenColumns, found: Sequence[tuple[str, str]]) -> str:
    """Compare columns that were given with those of a dataset.

    Args:
        expected: What a writer has to give.
        found: Names and types of what is given, as Spark writes them.

    Returns:
        For each column that differs what is expected behind ``-`` and what was given behind ``+``; empty where all fit.
    """
    wanted = {each.name: _plain(spark_type_of(each.type, column=each.name)) for each in expected.schema.fields}
    given = {name: _plain(kind) for name, kind in found}
    lines = []
    for name, kind in wanted.items():
        if name not in given:
            lines += [] if name in expected.optional else [f"- {quote_spark_name(name)} {kind}"]
        elif given[name] != kind:
            lines += [f"- {quote_spark_name(name)} {kind}", f"+ {quote_spark_name(name)} {given[name]}"]
    return ", ".join(
        [*lines, *(f"+ {quote_spark_name(name)} {kind}" for name, kind in given.items() if name not in wanted)]
    )


def _optional(kind: DataType) -> DataType:
    return kind if isinstance(kind, DataTypeOption) else DataTypeOption(inner=kind)


def _plain(kind: str) -> str:
    """Write a type of Spark in one form, whether null is allowed inside or not."""
    return kind.upper().replace(" NOT NULL", "").replace(" ", "").replace("`", "")


def _attachments(view: DatasetView) -> tuple[SetAttachments, ...]:
    return () if view.attachments is None else (view.attachments,)


def _unknown(_name: str) -> ReferencedRows | None:
    return None
