"""What the rules need to know about a chain so far.

The state is a fold: ``advance`` makes the next from the last and a block. It holds no block and no query, only what
some rule compares the next block with; its size is bounded by the inputs, push sources and columns of the dataset.

Source: ``spec/chain.md``.
"""

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from odf_protocol.block import Block
from odf_protocol.coverage import Coverage, Lapse
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DataSchema,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    Event,
    ExecuteTransform,
    ExecuteTransformInput,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
    SourceState,
)
from odf_protocol.events.equality import with_defaults
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from odf_protocol.wire.encoder import encode_root

DEFINITIONS = (
    SetTransform, SetDataSchema, SetVocab, SetPollingSource, DisablePollingSource, AddPushSource, DisablePushSource,
)  # fmt: skip
"""All that is neither data nor about the dataset as such."""


@dataclass(frozen=True, slots=True)
class PushSource:
    """A push source in force: its name, and a digest of its definition with defaults filled in."""

    name: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class InputProgress:
    """How far a derivative dataset has taken an input: last block and last row, None before the first."""

    dataset_id: DatasetId
    block_hash: Multihash | None
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """A chain after its newest block.

    Attributes:
        dataset_id: Identity, from the Seed.
        kind: Root or derivative, from the Seed.
        head: Hash of the newest block.
        sequence_number: Of the newest block.
        system_time: Of the newest block.
        vocabulary: Names of the system columns.
        schema: Newest schema in ODF's form.
        has_legacy_schema: The newest schema is in the old Arrow form, which is not compared with anything.
        has_polling_source: A polling source is in force.
        push_sources: Push sources in force, in order of first appearance.
        transform_inputs: What the next ExecuteTransform must list; None while nothing defines it.
        has_data_block: There was an AddData or ExecuteTransform.
        last_offset: Of the last row; None while there is none.
        checkpoint: New checkpoint of the last data block, which the next one must name.
        watermark: That of the last data block.
        highest_watermark: Highest ever reported; differs from ``watermark`` where a foreign chain let it fall.
        source_state: That of the last AddData.
        inputs: Progress, as of the last ExecuteTransform.
        earlier_inputs: Progress of inputs that earlier steps took and the last one did not.
        coverage: What the steps are together, beside what each of them is.
        definitions: How many blocks say how the dataset is made, and count for as long as it lives.
    """

    dataset_id: DatasetId
    kind: DatasetKind
    head: Multihash
    sequence_number: int
    system_time: Timestamp
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    schema: DataSchema | None = None
    has_legacy_schema: bool = False
    has_polling_source: bool = False
    push_sources: tuple[PushSource, ...] = ()
    transform_inputs: tuple[DatasetId, ...] | None = None
    has_data_block: bool = False
    last_offset: int | None = None
    checkpoint: Multihash | None = None
    watermark: Timestamp | None = None
    highest_watermark: Timestamp | None = None
    source_state: SourceState | None = None
    inputs: tuple[InputProgress, ...] = ()
    earlier_inputs: tuple[InputProgress, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    definitions: int = 0

    @property
    def has_schema(self) -> bool:
        """Whether there was any SetDataSchema."""
        return self.schema is not None or self.has_legacy_schema

    @property
    def next_offset(self) -> int:
        """Number of the next row."""
        return 0 if self.last_offset is None else self.last_offset + 1

    def find_push_source(self, name: str) -> PushSource | None:
        """Find a push source in force."""
        return next((source for source in self.push_sources if source.name == name), None)

    def progress_by_input(self) -> dict[DatasetId, InputProgress]:
        """Return the progress of every input that some step has taken, whichever query was in force (PLAN-9)."""
        return {progress.dataset_id: progress for progress in (*self.earlier_inputs, *self.inputs)}


def start(block: Block) -> ChainState:
    """Make the state after a Seed that was judged to be one."""
    assert isinstance(block.event, Seed)
    return ChainState(
        dataset_id=block.event.dataset_id,
        kind=block.event.dataset_kind,
        head=block.hash,
        sequence_number=block.sequence_number,
        system_time=block.system_time,
    )


def advance(state: ChainState, block: Block) -> ChainState:
    """Make the state after one more block, which was judged to obey the rules."""
    # One copy of a state for each block: a chain has many.
    return replace(
        state,
        head=block.hash,
        sequence_number=block.sequence_number,
        system_time=block.system_time,
        definitions=state.definitions + isinstance(block.event, DEFINITIONS),
        **_changes_by(block.event, block.sequence_number, state),
    )


def _changes_by(event: Event, number: int, state: ChainState) -> dict[str, Any]:
    """Return the values of attributes that an event changes."""
    match event:
        case AddData():
            return {**_data_changes(state, event), "source_state": event.new_source_state}
        case ExecuteTransform():
            return {**_data_changes(state, event), **_step_changes(state, event, number)}
        case SetTransform():
            return {
                "transform_inputs": tuple(DatasetId.parse(item.dataset_ref) for item in event.inputs),
                "coverage": state.coverage.with_query(state.next_offset),
            }
        case SetDataSchema():
            return {"schema": event.schema, "has_legacy_schema": event.schema is None}
        case SetVocab():
            return {"vocabulary": Vocabulary.of(event)}
        case SetPollingSource():
            return {"has_polling_source": True}
        case DisablePollingSource():
            return {"has_polling_source": False}
        case AddPushSource():
            return {"push_sources": _with_push_source(state.push_sources, event)}
        case DisablePushSource(source_name=name):
            return {"push_sources": tuple(source for source in state.push_sources if source.name != name)}
    return {}


def _data_changes(state: ChainState, event: AddData | ExecuteTransform) -> dict[str, Any]:
    highest = state.highest_watermark
    if highest is None or (event.new_watermark is not None and event.new_watermark > highest):
        highest = event.new_watermark
    return {
        "has_data_block": True,
        "last_offset": event.new_data.offset_interval.end if event.new_data else event.prev_offset,
        "checkpoint": event.new_checkpoint.physical_hash if event.new_checkpoint else None,
        "watermark": event.new_watermark,
        "highest_watermark": highest,
    }


def _step_changes(state: ChainState, event: ExecuteTransform, number: int) -> dict[str, Any]:
    known = state.progress_by_input()
    taken = tuple(item.dataset_id for item in event.query_inputs)
    lapses = tuple(
        lapse
        for item in event.query_inputs
        if (lapse := _find_lapse(known.get(item.dataset_id), item, number)) is not None
    )
    return {
        "inputs": tuple(_progress(item) for item in event.query_inputs),
        "earlier_inputs": tuple(item for item in known.values() if item.dataset_id not in taken),
        "transform_inputs": taken,
        "coverage": state.coverage.with_step(lapses),
    }


def _find_lapse(last: InputProgress | None, item: ExecuteTransformInput, number: int) -> Lapse | None:
    """Compare where a step takes an input up with where the last step over it ended (PLAN-9)."""
    expected = (None, None) if last is None else (last.block_hash, last.offset)
    if (item.prev_block_hash, item.prev_offset) == expected:
        return None
    return Lapse(number, str(item.dataset_id), expected[1], item.prev_offset)


def _progress(item: ExecuteTransformInput) -> InputProgress:
    return InputProgress(
        item.dataset_id,
        item.prev_block_hash if item.new_block_hash is None else item.new_block_hash,
        item.prev_offset if item.new_offset is None else item.new_offset,
    )


def _with_push_source(sources: tuple[PushSource, ...], event: AddPushSource) -> tuple[PushSource, ...]:
    added = PushSource(event.source_name, push_source_fingerprint(event))
    if all(source.name != added.name for source in sources):
        return (*sources, added)
    return tuple(added if source.name == added.name else source for source in sources)


def push_source_fingerprint(event: AddPushSource) -> bytes:
    """Digest a push source such that two have the same digest exactly if they mean the same.

    Returns:
        32 bytes, SHA3-256 of the definition in the wire's form with every default filled in.
    """
    return hashlib.sha3_256(encode_root(with_defaults(event))).digest()
