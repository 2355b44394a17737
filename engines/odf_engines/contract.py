"""What a node asks of an engine and what it gets back; who answers is in ``engine``.

An *engine* is a content-addressed runtime that *offers* operations; a *session* is one sandboxed process of it; a
*request* fixes everything its result depends on; a *response*, checked as hostile, points to files in the workspace.

Source: clauses ENGINE-1 to ENGINE-12 in ``spec/extensions/engine-contract.md``; ODF "Engine contract".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from odf_engines.errors import (
    EngineError,
    EngineFailureError,
    EngineMissingError,
    InvalidQueryError,
    InvalidSourceError,
    LimitExceededError,
    NotReproducibleError,
    SandboxUnavailableError,
)
from odf_engines.ingest_parts import ConverterCall, PreparedRows, QuarantineReason, ReaderCall, ValidatorCall
from odf_engines.limits import Limits
from odf_engines.lookback import Lookback
from odf_engines.records.referenced_rows import ReferencedRows
from odf_engines.stage_metrics import StageMetrics
from odf_protocol.events import DataSchema, MergeStrategy, OffsetInterval, ReadStep, TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_engines.ingest_parts import StrategyCall

__all__ = [
    "MAX_STAGES",
    "ConverterCall",
    "EngineError",
    "EngineFailureError",
    "EngineMissingError",
    "Finding",
    "Grade",
    "GradeLevel",
    "IngestRequest",
    "IngestResponse",
    "InvalidQueryError",
    "InvalidSourceError",
    "LimitExceededError",
    "Limits",
    "Lookback",
    "NotReproducibleError",
    "PreparedRows",
    "QuarantineReason",
    "QueryRequest",
    "QueryResponse",
    "QueryTable",
    "ReaderCall",
    "ReferencedRows",
    "SandboxUnavailableError",
    "StageMetrics",
    "Statistics",
    "TransformClass",
    "TransformInput",
    "TransformRequest",
    "TransformResponse",
    "ValidatorCall",
    "Watermark",
]

MAX_STAGES = 40
"""Lines that say what a query does with its rows; more are counted.  # guess: as many as people read"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """A watermark that a block of an input stated, and the system time of that block.

    ``last_offset`` is the last row that the input had with the block, None without rows.
    """

    system_time: Timestamp
    event_time: Timestamp
    last_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformInput:
    """One input of a transform step.

    Attributes:
        dataset_id: Its DID, text; for messages and order only.
        alias: What the query calls it.
        vocabulary: Names of its system columns.
        schema: In force at the step; needed when there are no slices.
        slices: Parquet files of this node, oldest first; read only.
        hashes: Of these files as blocks name them, in the same order, by which some engines read; empty: not known.
        offset_interval: Rows of them to read, None for none.
        prev_offset: Last row before the step, None if there is none.
        earlier_slices: All before the step (VIEW-3) that no ``Lookback`` leaves out; the last may be in ``slices``.
        earlier_intervals: Offsets of the rows of ``earlier_slices``, in the same order; empty: all before the step.
        prev_schema: In force before the step, None where no step was before or nobody says; then it is ``schema``.
        watermarks: Every watermark its blocks in the step stated, oldest first.
        prev_watermark: The highest that a block before the step stated.
        earlier_watermarks: All before the step, oldest first, for a final query; the highest before the first row.
        earlier_since_us: Rows that are older do not count, nor do versions before it, and some of them are not given.
    """

    dataset_id: str
    alias: str
    vocabulary: Vocabulary
    schema: DataSchema
    slices: tuple[Path, ...]
    offset_interval: OffsetInterval | None
    prev_offset: int | None = None
    earlier_slices: tuple[Path, ...] = ()
    earlier_intervals: tuple[OffsetInterval, ...] = ()
    prev_schema: DataSchema | None = None
    watermarks: tuple[Watermark, ...] = ()
    prev_watermark: Timestamp | None = None
    earlier_watermarks: tuple[Watermark, ...] = ()
    earlier_since_us: int | None = None
    hashes: tuple[Multihash, ...] = ()

    @property
    def last_offset(self) -> int | None:
        """Last row up to the end of the step, None if there is none."""
        return self.prev_offset if self.offset_interval is None else self.offset_interval.end


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRequest:
    """One step of a derivative (ENGINE-15).

    Attributes:
        dataset_id: The derivative's DID, text.
        transform: The query; ``query`` or ``queries`` is set.
        vocabulary: Names of the derivative's system columns.
        inputs: In the order of SetTransform.
        system_time: Of the block to be; rows carry it in whole milliseconds.
        next_offset: Of the first output row.
        prev_checkpoint, prev_watermark: What the step before left, and reported.
        declared: Schema of the derivative in force, which says what may be null (FUSION-14); None: it has none yet.
        limits: Tighter or wider than the session's only in ``wall_s`` and the output limits.
    """

    dataset_id: str
    transform: TransformSql
    vocabulary: Vocabulary
    inputs: tuple[TransformInput, ...]
    system_time: Timestamp
    next_offset: int
    prev_checkpoint: Path | None = None
    prev_watermark: Timestamp | None = None
    declared: DataSchema | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What a request did.

    Attributes:
        rows_in: Rows read.
        rows_out: Rows written.
        late_rows: Rows of the inputs that came too late.
        seconds: Inside the engine.
        rows_by_input: Rows read of each input of a step, in order; None: the engine does not say.
        rows_by_operation: Rows written, by operation from 0 on, as the host counted them; None: nobody did.
        stages: Of an ingest, by stage and plug-in (STAGE-1).
    """

    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    seconds: float = 0.0
    rows_by_input: tuple[int | None, ...] = ()
    rows_by_operation: tuple[int, ...] | None = None
    stages: tuple[StageMetrics, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformResponse:
    """Result of one step.

    Attributes:
        schema: Of the output, system columns first; there even without rows.
        data_path, offset_interval: The new slice and its rows, None without rows.
        logical_hash: Of the slice, where the engine's host side has read it anyway; a node computes it otherwise.
        watermark: Of the derivative after the step, never below ``prev_watermark``.
        checkpoint_path: State for the next step, None if the query needs none.
        is_ordered: Whether the query fixes the order of the rows; otherwise only their bag can be repeated.
    """

    schema: pa.Schema
    data_path: Path | None
    offset_interval: OffsetInterval | None
    watermark: Timestamp | None
    checkpoint_path: Path | None
    statistics: Statistics
    logical_hash: Multihash | None = None
    is_ordered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """New data for a root dataset.

    Attributes:
        dataset_id: DID of the root, text.
        read: How to read the file.
        preprocess: Query over the rows read, table ``input``.
        prepared: What that query gave, where another engine ran it; the source is not read again then.
        merge: How new rows meet those already there; ``strategy``: of a package, in its place (ING-56).
        vocabulary: Names of the dataset's system columns.
        source_path: One local file, decompressed; absolute.
        source_name: What people call it, for messages.
        known_schema: Of the dataset, None before its first data.
        state_path: Projected state that the last ingest left, Parquet.
        system_time: Of the block to be.
        fallback_event_time: For rows that have none.
        next_offset: Of the first new row.
        prev_watermark: Of the dataset.
        reader: What takes the file apart instead of the read step, which names the columns; None: the read step does.
        converters: What rows go through before anything else, in order.
        validators: What rows have to pass, in order.
        limits: As in ``TransformRequest``.
        has_samples: Whether the first rows behind each stage are shown, too.
    """

    dataset_id: str
    read: ReadStep
    preprocess: TransformSql | None
    merge: MergeStrategy
    vocabulary: Vocabulary
    source_path: Path
    source_name: str
    known_schema: DataSchema | None
    state_path: Path | None
    system_time: Timestamp
    fallback_event_time: Timestamp
    next_offset: int
    prev_watermark: Timestamp | None = None
    reader: ReaderCall | None = None
    converters: tuple[ConverterCall, ...] = ()
    validators: tuple[ValidatorCall, ...] = ()
    limits: Limits = field(default_factory=Limits)
    prepared: PreparedRows | None = None
    strategy: StrategyCall | None = None
    has_samples: bool = False

    def __post_init__(self) -> None:
        # Whoever opens it has another working folder.
        if not self.source_path.is_absolute():
            raise ValueError(f"source_path: expected an absolute path, found {self.source_path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResponse:
    """Result of an ingest; absent paths mean no rows of that kind.

    Attributes:
        schema: Of the dataset, system columns first.
        data_path: The new slice; ``offset_interval``: rows of it.
        logical_hash: See ``TransformResponse``.
        watermark: Of the dataset after it.
        state_path: Projected state for the next ingest, Parquet.
        quarantine_path: Rows that could not be taken, with their errors, Parquet; ``quarantined_rows``: how many.
        quarantine_reasons: The commonest ones; ``quarantine_codes``: how many rows have an error of each code.
        warnings: The commonest ones of rows that were taken, at most ``MAX_REASONS``.
        batch_faults: What is wrong with the batch as a whole, at most ``MAX_REASONS``; one rejects it.
        left_out_rows: Records that a converter left out (CONV-7); ``kept_rows``: current rows that stay (ING-48).
        ignored_fields: How many records have a field that no column names; the empty name is for further ones.
        statistics: For the operator; ``samples``: the first rows behind each stage, where they are asked for.
    """

    schema: pa.Schema
    data_path: Path | None
    offset_interval: OffsetInterval | None
    watermark: Timestamp | None
    state_path: Path | None
    quarantine_path: Path | None
    quarantined_rows: int
    statistics: Statistics
    logical_hash: Multihash | None = None
    quarantine_reasons: tuple[QuarantineReason, ...] = ()
    quarantine_codes: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[QuarantineReason, ...] = ()
    batch_faults: tuple[str, ...] = ()
    left_out_rows: int = 0
    kept_rows: int = 0
    ignored_fields: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTable:
    """A dataset that a query may read, ``slices`` oldest first; no ``is_changelog``: plain rows, no system columns."""

    name: str
    vocabulary: Vocabulary
    schema: DataSchema
    slices: tuple[Path, ...] = ()
    is_changelog: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """A question by a person; its answer is not part of any chain.

    Attributes:
        tables: What it may read.
        sql: One query, in the engine's own SQL.
        known: Names of all tables that a query could have named, for the message about one that is not there.
        as_of: Only rows with a system time up to this are visible; None for all.
        max_rows: Cut the answer there.
        limits: As in ``TransformRequest``.
    """

    tables: tuple[QueryTable, ...]
    sql: str
    as_of: Timestamp | None = None
    max_rows: int | None = None
    limits: Limits = field(default_factory=Limits)
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResponse:
    """The answer, as Parquet; to a question also as Arrow's stream, which alone is read outside of a sandbox."""

    result_path: Path
    schema: pa.Schema
    rows: int
    rows_path: Path | None = None


class TransformClass(StrEnum):
    """What a transform's output is, as the query alone decides (VIEW-1)."""

    MAP = "map"  # each row of the output follows from one row of the input
    MAINTAINED = "maintained"  # folded, the output is the query over the folded inputs
    FINAL = "final"  # each row once, when the watermark allows no other answer

    @property
    def reads_whole_inputs(self) -> bool:
        """Whether a step needs the rows before it as well (VIEW-3, WINDOW-3)."""
        return self is not TransformClass.MAP


class GradeLevel(StrEnum):
    """How far a transform can be repeated (ENGINE-7)."""

    REPRODUCIBLE = "reproducible"  # the result follows from query and rows; another engine build gives it too
    PINNED = "pinned"  # repeats exactly under one engine digest
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One expression or clause that lowers the grade, why, and what would pass instead."""

    expression: str
    reason: str
    rewrite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """Verdict about a transform before it is published.

    Attributes:
        level: The lowest that any part of the query has.
        transform_class: None if rejected, or if there is an obstacle.
        findings: What lowers it; empty for ``REPRODUCIBLE``.
        schema: Of the output, system columns first; None if rejected, or if there is an obstacle.
        obstacle: Why the engine cannot run it as a transform, although its result could be repeated.
        stages: What it does with its rows, for people; at most ``MAX_STAGES`` lines.
        key: Columns of the output that tell its rows apart; none of them where there is one row, None: not known.
        lookbacks: Of inputs of which not all rows before a step can count, by alias.
        time_columns: Of a result that is rejected for want of an event time: what could be it.
        follows_watermarks: Whether steps state a watermark as inputs do; None: it is not said.
    """

    level: GradeLevel
    findings: tuple[Finding, ...] = ()
    transform_class: TransformClass | None = None
    schema: pa.Schema | None = None
    obstacle: Finding | None = None
    stages: tuple[str, ...] = ()
    key: tuple[str, ...] | None = None
    lookbacks: Mapping[str, Lookback] = field(default_factory=dict)
    follows_watermarks: bool | None = None
    time_columns: tuple[str, ...] = ()
