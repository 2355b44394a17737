"""Whether the rows of a source that is to be changed still fit the dataset, which keeps the columns that it has.

Source: clause ING-20 in ``spec/ingest.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from odf_engines.ingest.columns import Columns, InvalidColumnsError
from odf_engines.ingest.slice_writer import check_compatible, slice_schema_of
from odf_node.errors import UsageError
from odf_node.ingest.manifest_check import FindColumns, find_row_columns, list_converters
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DataTypeOption,
    Event,
    MergeStrategyChangelogStream,
    SetAttachments,
    SetDataSchema,
    SetPollingSource,
    SetVocab,
)
from odf_protocol.events.equality import means_the_same
from odf_protocol.manifest.errors import At
from odf_protocol.schema_arrow import data_schema_of, rows_schema_of
from odf_protocol.schema_compat import find_incompatibility, find_slice_incompatibility, is_same
from odf_protocol.vocabulary import Vocabulary

_Source = SetPollingSource | AddPushSource


def check_changed_sources(name: str, view: DatasetView, events: Sequence[Event], find_columns: FindColumns) -> None:
    """Reject sources of which no file, or none with a null, could be taken; a query is known by its first rows only.

    Args:
        name: Of the dataset.
        view: What it is.
        events: What shall be in force, which ``ManifestCheck`` passed.
        find_columns: Of the datasets that converters look into.

    Raises:
        UsageError: A column is another, or may be null and the dataset's may not.
    """
    declared = [event.schema for event in events if isinstance(event, SetDataSchema)] or [view.schema]
    if declared[-1] is None:
        return
    known = rows_schema_of(declared[-1])
    # A source that stays has to fit a schema that changes.
    is_evolved = view.schema is not None and not is_same(view.schema, declared[-1])
    vocabulary = next((Vocabulary.of(event) for event in events if isinstance(event, SetVocab)), view.vocabulary)
    attachments = next((event for event in events if isinstance(event, SetAttachments)), view.attachments)
    converters = list_converters(() if attachments is None else (attachments,))
    for source in _iter_changed(view, events, attachments, is_all=is_evolved):
        columns = find_row_columns(source, vocabulary, converters, At(), find_columns, known)
        if columns is not None:
            _check_columns(name, source, columns, vocabulary, known)


def evolve(view: DatasetView, events: Sequence[Event], find_columns: FindColumns) -> tuple[Event, ...]:
    """Give events that let a dataset have the columns of its changed sources: new ones are optional (SCHEMA-1).

    Args:
        view: What it is.
        events: What shall be in force, which ``ManifestCheck`` passed, without a schema of their own.
        find_columns: Of the datasets that converters look into.

    Returns:
        The events, behind a schema where there are new columns; columns that go or change are left to
        ``check_changed_sources``, which rejects them.
    """
    if view.schema is None or any(isinstance(event, SetDataSchema) for event in events):
        return tuple(events)
    attachments = next((event for event in events if isinstance(event, SetAttachments)), view.attachments)
    converters = list_converters(() if attachments is None else (attachments,))
    fields = list(view.schema.fields)
    for source in _iter_changed(view, events, attachments):
        columns = find_row_columns(source, view.vocabulary, converters, At(), find_columns, None)
        if columns is None:
            continue
        found = slice_schema_of(columns, view.vocabulary, op_is_nullable=False)
        made = data_schema_of(pa.schema([field.with_nullable(True) for field in found])).fields
        if {field.name for field in made} >= {field.name for field in fields}:
            known = {field.name: field for field in fields}
            fields = [_grown(known.get(field.name), field) for field in made]
    if fields == list(view.schema.fields):
        return tuple(events)
    return SetDataSchema(schema=replace(view.schema, fields=tuple(fields))), *events


def _grown(held: DataField | None, found: DataField) -> DataField:
    """Give a field as the dataset has it, with the members that a source has more in its structs and lists."""
    if held is None:
        return found
    kind = found.type
    if not isinstance(held.type, DataTypeOption) and isinstance(kind, DataTypeOption):
        kind = kind.inner
    grown = replace(held, type=kind)
    before, after = DataSchema(fields=(held,)), DataSchema(fields=(grown,))
    is_more = find_slice_incompatibility(before, after) is not None and find_incompatibility(before, after) is None
    return grown if is_more else held


def _iter_changed(
    view: DatasetView, events: Sequence[Event], attachments: SetAttachments | None, *, is_all: bool = False
) -> Iterator[_Source]:
    """Yield the sources to be in force whose rows will have come another way than before, or all of them."""
    before: dict[str | None, _Source] = {}
    before.update(view.push_sources)
    if view.polling_source is not None:
        before[None] = view.polling_source
    after = before | {
        event.source_name if isinstance(event, AddPushSource) else None: event
        for event in events
        if isinstance(event, _Source)
    }
    is_converted_alike = list_converters(filter(None, [attachments])) == list_converters(
        filter(None, [view.attachments])
    )
    for place, source in after.items():
        old = before.get(place)
        if is_all or old is None or not is_converted_alike or not _reads_alike(old, source):
            yield source


def _reads_alike(one: _Source, other: _Source) -> bool:
    parts = ("read", "preprocess", "merge")
    return all(means_the_same(getattr(one, part), getattr(other, part)) for part in parts)


def _check_columns(name: str, source: _Source, columns: Columns, vocabulary: Vocabulary, known: pa.Schema) -> None:
    where = f"the source '{source.source_name}'" if isinstance(source, AddPushSource) else "the polling source"
    passes_op = isinstance(source.merge, MergeStrategyChangelogStream) and columns.op is not None
    op_is_nullable = passes_op and columns.schema.field(columns.op).nullable
    found = slice_schema_of(columns, vocabulary, op_is_nullable=op_is_nullable)
    try:
        check_compatible(found, known)
    except InvalidColumnsError as error:
        is_more = {*found.names} > {*known.names}
        way = "; with --evolve the new columns become optional ones of the dataset" if is_more else ""
        raise UsageError(f"'{name}' cannot be changed this way: of {where}, {error} (ING-20){way}") from error
    system = {vocabulary.offset, vocabulary.op, vocabulary.system_time, vocabulary.event_time}
    for have, want in zip(found, known, strict=True):
        if have.nullable and not want.nullable and want.name not in system:
            raise UsageError(
                f"'{name}' cannot be changed this way: of {where}, the column {want.name} may be null, and that of the"
                " dataset may not: a file with one null would be rejected whole; as NOT NULL its row alone is set"
                " aside (ING-20)"
            )
