"""New tables: a root with a schema, and one push source by which rows meet those of their key.

Source: clause TABLE-2 in ``spec/plug-ins/tables.md``.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from odf_engines.records.carriers import slice_type_of
from odf_node.composition import Node
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    AddPushSource,
    DataSchema,
    MergeStrategyAppend,
    MergeStrategyUpsertStream,
    ReadStepParquet,
    SetDataSchema,
    SetVocab,
)
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.names import DatasetName
from odf_protocol.schema_arrow import arrow_schema_of, data_schema_of
from odf_protocol.schema_ddl import parse_ddl
from odf_protocol.vocabulary import Vocabulary
from odf_tables.frames import check_column_name, read_frame

SOURCE_NAME: Final = "default"
_INSTANT: Final = pa.timestamp("ms", "UTC")


def create_table(
    node: Node, name: str, schema: object, *, key: Sequence[str] = (), event_time: str | None = None
) -> DatasetRecord:
    """Create a table.

    Args:
        node: Where.
        name: Of the dataset.
        schema: An Arrow schema, a frame with the columns, names with Arrow types, or columns as SQL writes them.
        key: The columns by which rows are told apart; they hold a value in every row.
        event_time: The column that says when a row happened; None: ``event_time``, the time of the write unless given.

    Raises:
        UsageError: The name is taken, a column of the key is none, or no slice can hold a column.
        MalformedError: The name or a definition is none.
    """
    keys = [key] if isinstance(key, str) else [*key]
    fields = _list_fields(schema)
    vocabulary = Vocabulary() if event_time is None else Vocabulary(event_time=event_time)
    _check_names(fields, keys, vocabulary, event_time)
    fields = [each.with_nullable(each.nullable and each.name not in keys) for each in fields]
    given = [each for each in fields if each.name != vocabulary.event_time]
    times = next((each for each in fields if each.name == vocabulary.event_time), pa.field("", _INSTANT))
    rows = pa.schema(
        [
            pa.field(vocabulary.offset, pa.int64(), nullable=False),
            pa.field(vocabulary.op, pa.int32(), nullable=False),
            pa.field(vocabulary.system_time, _INSTANT, nullable=False),
            pa.field(vocabulary.event_time, times.type, nullable=False),
            *given,
        ]
    )
    read = ReadStepParquet(schema=DataSchema(fields=data_schema_of(pa.schema(fields)).fields))
    merge = MergeStrategyUpsertStream(primary_key=tuple(keys)) if keys else MergeStrategyAppend()
    vocab = () if event_time is None else (SetVocab(event_time_column=event_time),)
    snapshot = DatasetSnapshot(
        name=str(DatasetName.parse(name)),
        kind=DatasetKind.ROOT,
        metadata=(
            *vocab,
            SetDataSchema(schema=data_schema_of(rows)),
            AddPushSource(source_name=SOURCE_NAME, read=read, merge=merge),
        ),
    )
    node.ingestor.check_manifest(snapshot)
    node.sweeper.clean_up()
    (record,) = node.creator.create_all([snapshot], system_time=node.clock.now())
    node.record("add", record.name, str(record.id))
    return record


def _list_fields(schema: object) -> list[pa.Field]:
    """List the columns that a schema means, as slices hold them."""
    found = _read_schema(schema)
    fields = []
    for field in found:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        try:
            fields.append(pa.field(field.name, slice_type_of(kind), field.nullable))
        except UnsupportedError as error:
            raise UsageError(f"column '{field.name}': {error}") from error
    return fields


def _read_schema(schema: object) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        return arrow_schema_of(parse_ddl([schema]))
    if callable(write := getattr(schema, "toDDL", None)):  # Spark's StructType
        return arrow_schema_of(parse_ddl([write()]))
    if isinstance(schema, Mapping):
        try:
            return pa.schema([*schema.items()])
        except (TypeError, ValueError) as error:  # of Arrow; a name that UTF-8 has no form for, too
            raise UsageError(f"a schema has Arrow types by the names of columns: {error}") from error
    if hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        return pa.schema(schema)
    return read_frame(schema).schema


def _check_names(fields: Sequence[pa.Field], keys: Sequence[str], vocabulary: Vocabulary, given: str | None) -> None:
    names = [field.name for field in fields]
    if not names:
        raise UsageError("a table has at least one column")
    for name in names:
        check_column_name(name)
    if twice := sorted({each for each in names if names.count(each) > 1}):
        raise UsageError(f"column '{twice[0]}' stands twice")
    if own := sorted({*names} & {vocabulary.offset, vocabulary.op, vocabulary.system_time}):
        raise UsageError(f"column '{own[0]}' is the node's own; give it another name")
    if missing := [each for each in keys if each not in names]:
        raise UsageError(f"column '{missing[0]}' of the key is none of {', '.join(names)}")
    if len({*keys}) != len(keys):
        raise UsageError(f"a column stands twice in the key {', '.join(keys)}")
    nested = [field.name for field in fields if field.name in keys and pa.types.is_nested(field.type)]
    if nested:
        raise UsageError(f"column '{nested[0]}' is a list or struct, which is no key")
    if given is not None and given not in names:
        raise UsageError(f"column '{given}' of event times is none of {', '.join(names)}")
    kinds = {field.name: field.type for field in fields}
    kind = kinds.get(vocabulary.event_time)
    if kind is not None and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise UsageError(f"column '{vocabulary.event_time}' has the times of events: expected a timestamp or date")
