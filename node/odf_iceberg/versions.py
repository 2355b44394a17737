"""Versions of a dataset: its blocks that add rows, each of which is a snapshot of an Iceberg table.

Source: clauses ICEBERG-5 and ICEBERG-7 in ``spec/plug-ins/iceberg.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import (
    AddData,
    DataSchema,
    DataSlice,
    DataType,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
    ExecuteTransform,
    SetDataSchema,
)
from odf_protocol.multihash import Multihash

MAX_VERSIONS: Final = 100_000  # guess: some hundred MB of what is made of them
MAX_COLUMNS: Final = 100_000
"""Of all schemas of a chain together, those inside of others too.  # guess: two seconds, 60 MB and 6 MB of JSON"""
_ID_BYTES: Final = 8
_POSITIVE: Final = (1 << 63) - 1
"""Snapshot ids are positive numbers of 63 bits. Source: Iceberg table specification, "Snapshots"."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a dataset's rows.

    Attributes:
        place: Among the versions, from 0.
        block: Hash of the block that made it.
        block_number: Of that block.
        added_ms: System time of the block, in milliseconds since 1970; never before that of the version before.
        slice: The rows that it added.
        schema: Number of the schema in force at it, among those of the chain, from 0.
    """

    place: int
    block: Multihash
    block_number: int
    added_ms: int
    slice: DataSlice
    schema: int

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot: the first 63 bits of the block's hash."""
        return snapshot_id_of(self.block)

    @property
    def sequence_number(self) -> int:
        """Iceberg's number of the snapshot, from 1."""
        return self.place + 1


def snapshot_id_of(block: Multihash) -> int:
    """Return the id of the snapshot that a block makes."""
    return int.from_bytes(block.digest[:_ID_BYTES], "big") & _POSITIVE


@dataclass(frozen=True, slots=True)
class History:
    """What a chain says of its rows: the schemas that it ever had, in order, and its versions."""

    schemas: tuple[DataSchema, ...]
    versions: tuple[Version, ...]


def read_history(store: MetadataStore, dataset_id: DatasetId, upto: int) -> History:
    """Read the versions of a chain up to and with a block.

    Raises:
        MalformedError: It has more than ``MAX_VERSIONS``, or ``MAX_COLUMNS``.
    """
    columns = 0
    schemas: list[DataSchema] = []
    versions: list[Version] = []
    latest_ms = 0
    for block in _iter_blocks(store, dataset_id, upto):
        event = block.event
        if isinstance(event, SetDataSchema) and event.schema is not None:
            columns += sum(_count_columns(each.type) for each in event.schema.fields)
            if columns > MAX_COLUMNS:
                raise _too_large(f"schemas with {MAX_COLUMNS} columns, all together")
            schemas.append(event.schema)
        elif isinstance(event, AddData | ExecuteTransform) and event.new_data is not None and schemas:
            if len(versions) == MAX_VERSIONS:
                raise _too_large(f"{MAX_VERSIONS} versions")
            latest_ms = max(latest_ms, block.system_time.unix_ms)
            versions.append(
                Version(len(versions), block.hash, block.sequence_number, latest_ms, event.new_data, len(schemas) - 1)
            )
    return History(tuple(schemas), tuple(versions))


def _too_large(allowed: str) -> MalformedError:
    return MalformedError("dataset as an Iceberg table", expected=f"at most {allowed}", found="more")


def _count_columns(data_type: DataType) -> int:
    match data_type:
        case DataTypeOption(inner=inner):
            return _count_columns(inner)
        case DataTypeList(item_type=item_type):
            return 1 + _count_columns(item_type)
        case DataTypeMap(key_type=key_type, value_type=value_type):
            return 1 + _count_columns(key_type) + _count_columns(value_type)
        case DataTypeStruct(fields=fields):
            return 1 + sum(_count_columns(each.type) for each in fields)
    return 1


def _iter_blocks(store: MetadataStore, dataset_id: DatasetId, upto: int) -> Iterator[Block]:
    for stored in store.iter_blocks(dataset_id, upto=upto):
        yield decode_block(stored.raw, expected_hash=stored.hash)


def groups_of(count: int, size: int) -> Sequence[tuple[int, int]]:
    """Cut ``count`` places into groups of ``size``; the last one may have fewer."""
    return [(start, min(start + size, count)) for start in range(0, count, size)]
