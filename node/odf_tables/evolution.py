"""Columns that a table gains by a frame that has more, where the caller allows it.

Source: clause TABLE-6 in ``spec/plug-ins/tables.md``; SCHEMA-5 in ``spec/manifests.md``.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.datasets.redefinition import require_changeable
from odf_node.datasets.writer import find_writing_time
from odf_node.ingest.concurrent_writes import MAX_REST_S
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import HeadMovedError, VersionMovedError
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import DataField, DataSchema, Event, ReadStepParquet, SetDataSchema
from odf_protocol.schema_arrow import data_schema_of
from odf_tables.frames import list_added

_ATTEMPTS: Final = 20  # guess: columns are added once, and others that do it add the same


def add_columns(node: Node, record: DatasetRecord, frame: pa.Table, if_version: int | None) -> int | None:
    """Let a table have the columns that only a frame has, null in rows that are there, by a version of its own.

    Args:
        node: Where.
        record: The table.
        frame: Whose columns are to be the table's.
        if_version: The newest version there may be; None: any.

    Returns:
        The version behind which the rows are to be written, where one was given.

    Raises:
        UsageError: The dataset is another node's, or a source of it could not give the columns.
        VersionMovedError: Another version is the newest.
        HeadMovedError: Others wrote all the time.
    """
    require_changeable(record)
    for attempts_left in reversed(range(_ATTEMPTS)):
        view = load_view(node.store, record.id)
        if view.schema is None or not (added := list_added(frame, view)):
            return if_version
        if if_version not in {None, view.sequence_number}:
            assert if_version is not None
            raise VersionMovedError(record.name, if_version, view.sequence_number)
        events = _events_of(view, data_schema_of(pa.schema(added)).fields)
        node.ingestor.check_changes(record, events)
        system_time = find_writing_time(node.store, node.clock, record.id)
        try:
            plan = node.creator.redefiner.plan(
                record, events, lambda event: event, system_time=system_time, is_all=False
            )
            changed = node.creator.redefiner.apply(plan)
        except HeadMovedError:
            if not attempts_left:
                raise
            time.sleep(random.uniform(0, MAX_REST_S))  # noqa: S311 - no secret
            continue
        node.record("replace", record.name, f"new columns: {', '.join(field.name for field in added)}")
        return None if if_version is None else changed.head.sequence_number
    raise AssertionError("the last attempt returns or raises")


def _events_of(view: DatasetView, added: Sequence[DataField]) -> list[Event]:
    assert view.schema is not None
    schema = replace(view.schema, fields=(*view.schema.fields, *added))
    events: list[Event] = [SetDataSchema(schema=schema)]
    for source in view.push_sources.values():
        if isinstance(source.read, ReadStepParquet) and source.read.schema is not None:
            read = ReadStepParquet(schema=DataSchema(fields=(*source.read.schema.fields, *added)))
            events.append(replace(source, read=read))
    return events
