"""Step records: everything that fixes the result of one transform step.

Whoever has the engine that ``engine.digest`` names and the slices that the inputs name can run the step again and must
get the same rows. Limits are in the record because they decide whether there is a result, never which one.
``odf_protocol.step_record_codec`` gives records their bytes and signatures.

Source: clauses REPLAY-1 to REPLAY-7 and REPLAY-13 in ``spec/extensions/replay.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from odf_protocol.block import Block
from odf_protocol.canonical_json import Document, ShortText, Text, encode_canonical, parse_exact
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import ExecuteTransform, ExecuteTransformInput, OffsetInterval, TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.step_metrics import StepMetrics, check_metrics_fit
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary


class _Step(Document, frozen=True, kw_only=True):
    alias: str | None = None
    query: str


class _TemporalTable(Document, frozen=True, kw_only=True):
    name: str
    primary_key: tuple[str, ...]


class _Transform(Document, frozen=True, kw_only=True):
    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[_Step, ...] | None = None
    temporal_tables: tuple[_TemporalTable, ...] | None = None


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """An engine as its contents: name and version are for people, the digest decides."""

    name: str
    version: str
    digest: Multihash


class EngineDocument(Document, frozen=True, kw_only=True):
    """An engine as it is written."""

    name: ShortText
    version: ShortText
    digest: Text

    @classmethod
    def of(cls, engine: EngineIdentity) -> Self:
        """Write an engine down."""
        return cls(name=engine.name, version=engine.version, digest=str(engine.digest))

    def to_identity(self) -> EngineIdentity:
        """Read it.

        Raises:
            MalformedError: The digest is no hash.
        """
        return EngineIdentity(self.name, self.version, parse_exact(Multihash, self.digest, "engine digest"))


@dataclass(frozen=True, slots=True)
class StepSlice:
    """A data slice: which rows it has, and which file it was."""

    logical_hash: Multihash
    physical_hash: Multihash


@dataclass(frozen=True, slots=True)
class InputWatermark:
    """A watermark that a block of an input stated, and that block's system time."""

    system_time: Timestamp
    event_time: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """What one input contributed.

    Attributes:
        dataset_id: Whose rows.
        alias: What the query calls them.
        vocabulary: Names of its system columns.
        slices: Oldest first.
        offset_interval: Rows of the slices that were read; None for none.
        watermarks: All that its blocks in the step stated, oldest first.
    """

    dataset_id: DatasetId
    alias: str
    vocabulary: Vocabulary
    slices: tuple[StepSlice, ...]
    offset_interval: OffsetInterval | None
    watermarks: tuple[InputWatermark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """Everything that fixes the result of a step.

    Attributes:
        dataset_id: The derivative.
        engine: What ran.
        settings: Of the engine, those that can change a result.
        limits: Whole numbers by name, the unit at the name's end (``memory_bytes``, ``wall_ms``).
        transform: ``hash_transform`` of the query in force.
        vocabulary: Names of the derivative's system columns.
        inputs: In the order of SetTransform.
        system_time: Of the block; rows carry it in whole milliseconds.
        next_offset: Of the first row of the output.
        prev_checkpoint: Physical hash of the state before; None for none.
        prev_watermark: Watermark before; None for none.
        statistics: What the step did; None in records of earlier builds, and where nobody counted.
    """

    dataset_id: DatasetId
    engine: EngineIdentity
    settings: Mapping[str, str]
    limits: Mapping[str, int]
    transform: Multihash
    vocabulary: Vocabulary
    inputs: tuple[StepInput, ...]
    system_time: Timestamp
    next_offset: int
    prev_checkpoint: Multihash | None = None
    prev_watermark: Timestamp | None = None
    statistics: StepMetrics | None = None


def hash_transform(transform: TransformSql) -> Multihash:
    """Hash a query, its steps and its engine's name (REPLAY-3)."""
    queries, tables = transform.queries, transform.temporal_tables
    document = _Transform(
        engine=transform.engine,
        version=transform.version,
        query=transform.query,
        queries=None if queries is None else tuple(_Step(alias=step.alias, query=step.query) for step in queries),
        temporal_tables=None
        if tables is None
        else tuple(_TemporalTable(name=table.name, primary_key=table.primary_key) for table in tables),
    )
    return Multihash.of_sha3_256(encode_canonical(document))


def check_record_describes(record: StepRecord, block: Block, dataset_id: DatasetId) -> None:
    """Check that a record is about the step that a block records (REPLAY-6, REPLAY-14).

    Raises:
        RejectedError: The block is no step, or dataset, time, offsets, checkpoint, inputs or counts of rows differ.
    """
    event = block.event
    if not isinstance(event, ExecuteTransform):
        raise RejectedError("REPLAY-6 step", sequence_number=block.sequence_number, found=type(event).__name__)
    stated = [(item.dataset_id, _read_interval(item)) for item in event.query_inputs]
    checks: list[tuple[str, object, object]] = [
        ("dataset", dataset_id, record.dataset_id),
        ("system-time", block.system_time, record.system_time),
        ("next-offset", _after(event.prev_offset), record.next_offset),
        ("checkpoint", event.prev_checkpoint, record.prev_checkpoint),
        ("inputs", stated, [(item.dataset_id, item.offset_interval) for item in record.inputs]),
    ]
    for name, expected, found in checks:
        if expected != found:
            rule = f"REPLAY-6 same-{name}"
            raise RejectedError(rule, sequence_number=block.sequence_number, expected=expected, found=found)
    if record.statistics is not None:
        check_metrics_fit(record.statistics, block)


def _after(offset: int | None) -> int:
    return 0 if offset is None else offset + 1


def _read_interval(stated: ExecuteTransformInput) -> OffsetInterval | None:
    if stated.new_offset is None:
        return None
    return OffsetInterval(start=_after(stated.prev_offset), end=stated.new_offset)
