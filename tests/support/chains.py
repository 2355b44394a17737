"""Valid chains to start from: builders for every kind of event, and a writer that links blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AddData,
    AddPushSource,
    Checkpoint,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    Event,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepUrl,
    MergeStrategyAppend,
    MergeStrategyLedger,
    OffsetInterval,
    ReadStepNdJson,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    TimeUnit,
    TransformInput,
    TransformSql,
)
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp

NOON = Timestamp.parse("2024-01-01T12:00:00Z")
DATASET = DatasetId(b"\x01" * 32)
INPUT_A = DatasetId(b"\x0a" * 32)
INPUT_B = DatasetId(b"\x0b" * 32)


def hash_of(name: str) -> Multihash:
    """A block or physical hash."""
    return Multihash.of_sha3_256(name.encode())


def logical_hash_of(name: str) -> Multihash:
    """A logical hash."""
    return Multihash(ARROW0_SHA3_256, hash_of(name).digest)


def later(seconds: int) -> Timestamp:
    """Some seconds after noon."""
    return Timestamp(NOON.seconds + seconds)


_TIME = DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC")
SYSTEM_COLUMNS = (
    DataField(name="offset", type=DataTypeInt64()),
    DataField(name="op", type=DataTypeInt32()),
    DataField(name="system_time", type=_TIME),
    DataField(name="event_time", type=_TIME),
)


def optional(name: str) -> DataField:
    """An optional text column."""
    return DataField(name=name, type=DataTypeOption(inner=DataTypeString()))


def schema(*columns: DataField) -> SetDataSchema:
    """A schema of system columns and others."""
    return SetDataSchema(schema=DataSchema(fields=(*SYSTEM_COLUMNS, *(columns or (optional("city"),)))))


def rows(first: int, last: int) -> DataSlice:
    """A slice of rows ``first`` to ``last``."""
    name = f"{first}-{last}"
    interval = OffsetInterval(start=first, end=last)
    return DataSlice(
        logical_hash=logical_hash_of(name), physical_hash=hash_of(name), offset_interval=interval, size=100 + last
    )


def add_rows(first: int, last: int, **changes: Any) -> AddData:
    """Rows that follow ``first - 1``, with a watermark that follows the rows."""
    fields: dict[str, Any] = {"prev_offset": first - 1 if first else None, "new_data": rows(first, last)}
    if "new_watermark" not in changes:
        fields["new_watermark"] = later(last)
    return AddData(**(fields | changes))


def checkpoint(name: str) -> Checkpoint:
    """A checkpoint."""
    return Checkpoint(physical_hash=hash_of(name), size=10)


def sql(*queries: str, **changes: Any) -> TransformSql:
    """A normalized query, the last one without alias."""
    steps = tuple(
        SqlQueryStep(alias=None if n == len(queries) - 1 else f"step{n}", query=query)
        for n, query in enumerate(queries)
    )
    return TransformSql(**({"engine": "spark", "queries": steps} | changes))


def transform(*inputs: DatasetId, **changes: Any) -> SetTransform:
    """A definition over inputs called in0, in1, ..."""
    listed = tuple(TransformInput(dataset_ref=str(item), alias=f"in{n}") for n, item in enumerate(inputs))
    return SetTransform(**({"inputs": listed, "transform": sql("select * from in0")} | changes))


def push_source(name: str = "default", **changes: Any) -> AddPushSource:
    """A push source of JSON lines."""
    return AddPushSource(**({"source_name": name, "read": ReadStepNdJson(), "merge": MergeStrategyAppend()} | changes))


def polling_source(**changes: Any) -> SetPollingSource:
    """A polling source of JSON lines."""
    fields = {
        "fetch": FetchStepUrl(url="https://example.org/a"),
        "read": ReadStepNdJson(),
        "merge": MergeStrategyLedger(primary_key=("id",)),
    }
    return SetPollingSource(**(fields | changes))


def step(dataset_id: DatasetId, prev: int | None, new: int | None, **changes: Any) -> ExecuteTransformInput:
    """An input taken from after block ``prev`` to ``new``; every block has ten rows."""
    fields: dict[str, Any] = {
        "dataset_id": dataset_id,
        "prev_block_hash": None if prev is None else hash_of(f"{dataset_id} {prev}"),
        "new_block_hash": None if new is None else hash_of(f"{dataset_id} {new}"),
        "prev_offset": None if prev is None else prev * 10 + 9,
        "new_offset": None if new is None else new * 10 + 9,
    }
    return ExecuteTransformInput(**(fields | changes))


@dataclass
class ChainBuilder:
    """Writes linked blocks without asking the rules, so that one may be broken."""

    blocks: list[Block] = field(default_factory=list)
    version: int = 3

    @classmethod
    def root(cls, *events: Event) -> "ChainBuilder":
        """A root dataset: Seed and events."""
        return cls().add(Seed(dataset_id=DATASET, dataset_kind=DatasetKind.ROOT)).add(*events)

    @classmethod
    def derivative(cls, *events: Event) -> "ChainBuilder":
        """A derivative dataset: Seed and events."""
        return cls().add(Seed(dataset_id=DATASET, dataset_kind=DatasetKind.DERIVATIVE)).add(*events)

    def add(self, *events: Event) -> "ChainBuilder":
        """Add blocks, a second apart."""
        for event in events:
            self.blocks.append(self.next(event))
        return self

    def next(self, event: Event, **changes: Any) -> Block:
        """Make the block that would come next, or one that differs from it in ``changes``."""
        fields: dict[str, Any] = {
            "system_time": later(len(self.blocks)),
            "prev_block_hash": self.blocks[-1].hash if self.blocks else None,
            "sequence_number": len(self.blocks),
            "version": self.version,
        }
        return decode_block(encode_block(event, **(fields | changes)), expected_hash=None)

    def state(self, strictness: Strictness = Strictness.FOREIGN) -> ChainState | None:
        """Judge all blocks."""
        state = None
        for block in self.blocks:
            state, _warnings = append(state, block, strictness=strictness)
        return state


def ordinary_root_events(count: int) -> Iterator[Event]:
    """Schema and then slices of ten rows."""
    yield schema()
    for n in range(count):
        yield add_rows(n * 10, n * 10 + 9)


def ordinary_derivative_events(count: int) -> Iterator[Event]:
    """Definition, schema, and steps over two inputs that take turns."""
    yield transform(INPUT_A, INPUT_B)
    yield schema()
    last: dict[DatasetId, int | None] = {INPUT_A: None, INPUT_B: None}
    for n in range(count):
        advancing = (INPUT_A, INPUT_B)[n % 2]
        inputs = []
        for item in (INPUT_A, INPUT_B):
            new = n if item == advancing else None
            inputs.append(step(item, last[item], new))
            last[item] = last[item] if new is None else new
        yield ExecuteTransform(
            query_inputs=tuple(inputs),
            prev_offset=n * 10 - 1 if n else None,
            new_data=rows(n * 10, n * 10 + 9),
            new_watermark=later(n),
        )
