"""What is in force in a dataset: the fold of its chain into the newest definition of everything.

A chain is a list of changes; whoever writes, transforms or shows a dataset asks for the result. ``DatasetView`` is that
result after some block, and ``apply`` the step from one block to the next. It judges nothing: chain rules do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from odf_protocol.block import Block, decode_block
from odf_protocol.block_traits import DATA, WATERMARK
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DataSchema,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
    SourceState,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """The definitions and counters in force after the block ``head``.

    ``last_offset`` counts rows from 0 and is None while there is no data; ``watermark`` is the newest one reported.
    ``prev_checkpoint`` is what the next block of data has to name, ``query_checkpoint`` what the query in force left:
    the state of another query is of no use to it. ``has_data``: there was a block of data. ``is_redefined``: another
    query than the one in force was declared, and had made a step (VIEW-11).

    It follows from few blocks of a chain: those with definitions, the newest one of data, and the newest one of data
    that states a watermark; and from whether there was one of data before each query that is not the first. Applying
    only these, in order, gives the same view.
    """

    dataset_id: DatasetId
    kind: DatasetKind
    head: Multihash
    sequence_number: int
    system_time: Timestamp
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    schema: DataSchema | None = None
    polling_source: SetPollingSource | None = None
    push_sources: Mapping[str, AddPushSource] = field(default_factory=lambda: MappingProxyType({}))
    transform: SetTransform | None = None
    has_data: bool = False
    is_redefined: bool = False
    info: SetInfo | None = None
    license: SetLicense | None = None
    attachments: SetAttachments | None = None
    last_offset: int | None = None
    prev_checkpoint: Multihash | None = None
    query_checkpoint: Multihash | None = None
    watermark: Timestamp | None = None
    source_state: SourceState | None = None

    @property
    def next_offset(self) -> int:
        """The offset that the next row gets."""
        return 0 if self.last_offset is None else self.last_offset + 1


def start_view(block: Block) -> DatasetView:
    """Make the view after the first block.

    Raises:
        MalformedError: The block is not a Seed.
    """
    if not isinstance(block.event, Seed):
        raise MalformedError("chain", where=f"block {block.hash}", expected="Seed", found=type(block.event).__name__)
    return DatasetView(
        dataset_id=block.event.dataset_id,
        kind=block.event.dataset_kind,
        head=block.hash,
        sequence_number=block.sequence_number,
        system_time=block.system_time,
    )


def apply(view: DatasetView, block: Block) -> DatasetView:
    """Move the view over one more block of a chain that has passed the chain rules."""
    view = replace(view, head=block.hash, sequence_number=block.sequence_number, system_time=block.system_time)
    match block.event:
        case SetVocab() as event:
            return replace(view, vocabulary=Vocabulary.of(event))
        case SetDataSchema() as event:
            return replace(view, schema=event.schema)
        case SetPollingSource() as event:
            return replace(view, polling_source=event)
        case DisablePollingSource():
            return replace(view, polling_source=None)
        case AddPushSource() as event:
            return replace(view, push_sources=MappingProxyType({**view.push_sources, event.source_name: event}))
        case DisablePushSource() as event:
            rest = {name: source for name, source in view.push_sources.items() if name != event.source_name}
            return replace(view, push_sources=MappingProxyType(rest))
        case SetTransform() as event:
            is_redefined = view.is_redefined or (view.has_data and view.transform not in (None, event))
            return replace(view, transform=event, is_redefined=is_redefined, query_checkpoint=None)
        case SetInfo() as event:
            return replace(view, info=event)
        case SetLicense() as event:
            return replace(view, license=event)
        case SetAttachments() as event:
            return replace(view, attachments=event)
        case AddData() as event:
            return replace(_apply_data(view, event), source_state=event.new_source_state)
        case ExecuteTransform() as event:
            return _apply_data(view, event)
        case _:
            return view


def _apply_data(view: DatasetView, event: AddData | ExecuteTransform) -> DatasetView:
    data, checkpoint = event.new_data, event.new_checkpoint
    return replace(
        view,
        has_data=True,
        last_offset=data.offset_interval.end if data else event.prev_offset,
        prev_checkpoint=checkpoint.physical_hash if checkpoint else None,
        query_checkpoint=checkpoint.physical_hash if checkpoint else None,
        watermark=event.new_watermark or view.watermark,
    )


class ViewFold:
    """A ``DatasetView`` moved along a chain that has passed the chain rules; equal to applying every block."""

    __slots__ = ("_newest", "_newest_marked", "_view")

    def __init__(self, view: DatasetView | None) -> None:
        """Begin after the block that ``view`` is of; None: before the first one."""
        self._view = view
        self._newest: bytes | None = None
        self._newest_marked: bytes | None = None
        """With a watermark, and older than ``_newest``, or the same."""

    @property
    def view(self) -> DatasetView | None:
        """What is in force now; None before the first block."""
        for raw in dict.fromkeys((self._newest_marked, self._newest)):
            if raw is not None:
                assert self._view is not None
                self._view = apply(self._view, decode_block(raw, expected_hash=None))
        self._newest = self._newest_marked = None
        return self._view

    def take(self, raw: bytes, traits: int) -> None:
        """Move over a block that was checked; ``traits`` are those of its event."""
        if not traits & DATA:
            self.take_block(decode_block(raw, expected_hash=None))
            return
        self._newest = raw
        if traits & WATERMARK:
            self._newest_marked = raw

    def take_block(self, block: Block) -> None:
        """Move over a block that is decoded already."""
        view = self.view
        self._view = start_view(block) if view is None else apply(view, block)
