"""Events that add data: AddData at a root dataset, ExecuteTransform at a derivative one.

Source: ODF "AddData", "ExecuteTransform" and the tables below them.
"""

from dataclasses import dataclass
from typing import Final

from odf_protocol.did import DatasetId
from odf_protocol.events.declaration import U64
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetInterval:
    """Row numbers ``start`` to ``end``, both included."""

    start: U64
    end: U64

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return self.end - self.start + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSlice:
    """One Parquet file of rows.

    Attributes:
        logical_hash: Of the rows, whatever wrote them.
        physical_hash: Of the file's bytes; also its name.
        offset_interval: Rows in it.
        size: Of the file, in bytes.
    """

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State that an engine left for the next run; ``size`` in bytes."""

    physical_hash: Multihash
    size: U64


ETAG: Final = "odf/etag"
LAST_MODIFIED: Final = "odf/last-modified"
"""Kinds of a SourceState that ODF defines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """How far a source was read, such as ``odf/etag`` and its value."""

    source_name: str
    kind: str
    value: str

    @property
    def is_date(self) -> bool:
        """Whether the value is no version's name but only the time of its last change."""
        return self.kind == LAST_MODIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class AddData:
    """Rows, checkpoint, watermark or source state added to a root dataset.

    Attributes:
        prev_checkpoint: ``new_checkpoint`` of the last AddData.
        prev_offset: Last row number before this block.
        new_data: Slice added, if any.
        new_checkpoint: State for the next run.
        new_watermark: Event time up to which the data is thought complete.
        new_source_state: How far the source was read.
        extra: Free-form.
    """

    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
    new_source_state: SourceState | None = None
    extra: ExtraAttributes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteTransformInput:
    """What one input contributed: its blocks after ``prev_block_hash`` up to ``new_block_hash``, and their rows.

    Attributes:
        dataset_id: The input.
        prev_block_hash: Last block that earlier steps took; None at the first step.
        new_block_hash: Last block this step took; None if the input did not advance.
        prev_offset: Last row that earlier steps took.
        new_offset: Last row this step took; None if no rows came.
    """

    dataset_id: DatasetId
    prev_block_hash: Multihash | None = None
    new_block_hash: Multihash | None = None
    prev_offset: U64 | None = None
    new_offset: U64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteTransform:
    """One step of a derivative dataset; fields as in ``AddData``."""

    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
