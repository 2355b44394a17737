"""Every clause of spec/chain.md: at least one block that obeys it, and one that breaks it and nothing before it."""

from dataclasses import dataclass, replace

import pytest

from odf_protocol.block import Block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.rules import FIRST_BLOCK_RULES, RULES
from odf_protocol.chain.rules.schemas import MAX_DEFINITIONS
from odf_protocol.chain.rules.sources import MAX_PUSH_SOURCES
from odf_protocol.chain.rules.transforms import MAX_INPUTS
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeDate,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTimestamp,
    DisablePollingSource,
    DisablePushSource,
    Event,
    ExecuteTransform,
    ExecuteTransformInput,
    ExtraAttributes,
    FetchStepEthereumLogs,
    ReadStepCsv,
    ReadStepNdJson,
    Seed,
    SetDataSchema,
    SetInfo,
    SetTransform,
    SetVocab,
    SourceState,
    SqlQueryStep,
    TransformInput,
)
from odf_protocol.multihash import SHA2_256, Multihash
from support.chains import (
    DATASET,
    INPUT_A,
    INPUT_B,
    SYSTEM_COLUMNS,
    ChainBuilder,
    add_rows,
    checkpoint,
    hash_of,
    later,
    optional,
    polling_source,
    push_source,
    rows,
    schema,
    sql,
    step,
    transform,
)

SEED = Seed(dataset_id=DATASET, dataset_kind=DatasetKind.ROOT)


@dataclass(frozen=True)
class Case:
    """A chain, and the block to be judged after it; the chain may have had many ``definitions`` before."""

    clause: str
    chain: ChainBuilder
    block: Block
    definitions: int = 0

    def judge(self, strictness: Strictness) -> tuple[ChainState, list[str]]:
        state = self.chain.state()
        if state is not None:
            state = replace(state, definitions=state.definitions + self.definitions)
        state, warnings = append(state, self.block, strictness=strictness)
        return state, [str(warning) for warning in warnings]


def case(clause: str, words: str, chain: ChainBuilder, event: Event, **header: object) -> object:
    """A case whose block has ``event``, and differs from the block that would follow in ``header``."""
    return pytest.param(Case(clause, chain, chain.next(event, **header)), id=f"{clause} {words}")


def late_case(clause: str, words: str, definitions: int, chain: ChainBuilder, event: Event) -> object:
    """A case of a chain that had so many definitions before, which nobody wants to make here."""
    return pytest.param(Case(clause, chain, chain.next(event), definitions), id=f"{clause} {words}")


def root(*events: Event) -> ChainBuilder:
    return ChainBuilder.root(*events)


def derivative(*events: Event) -> ChainBuilder:
    return ChainBuilder.derivative(*events)


WITH_ROWS = (schema(), add_rows(0, 9))
TRANSFORM = transform(INPUT_A, INPUT_B)
FIRST_STEP = ExecuteTransform(
    query_inputs=(step(INPUT_A, None, 0), step(INPUT_B, None, None)), new_data=rows(0, 9), new_watermark=later(9)
)
WITH_STEP = (TRANSFORM, schema(), FIRST_STEP)


AWAY_AND_BACK = (
    *WITH_STEP,
    transform(INPUT_B),
    ExecuteTransform(
        query_inputs=(step(INPUT_B, None, 0),), prev_offset=9, new_data=rows(10, 19), new_watermark=later(19)
    ),
    transform(INPUT_A),
)


def third_step(*inputs: ExecuteTransformInput) -> ExecuteTransform:
    return ExecuteTransform(query_inputs=inputs, prev_offset=19, new_data=rows(20, 29), new_watermark=later(29))


def second_step(**changes: object) -> ExecuteTransform:
    fields: dict[str, object] = {
        "query_inputs": (step(INPUT_A, 0, 1), step(INPUT_B, None, 0)),
        "prev_offset": 9,
        "new_data": rows(10, 19),
        "new_watermark": later(19),
    }
    return ExecuteTransform(**(fields | changes))


def columns(*fields: DataField) -> SetDataSchema:
    return SetDataSchema(schema=DataSchema(fields=fields))


def struct_of(*fields: DataField) -> DataTypeOption:
    return DataTypeOption(inner=DataTypeStruct(fields=fields))


def nested(name: str, *fields: DataField) -> DataField:
    """A column of lists of structs."""
    return DataField(name=name, type=DataTypeOption(inner=DataTypeList(item_type=struct_of(*fields))))


OBEYED = [
    case("CHAIN-1", "seed", ChainBuilder(), SEED),
    case("CHAIN-2", "no-link", ChainBuilder(), SEED),
    case("CHAIN-3", "number-0", ChainBuilder(), SEED),
    case("CHAIN-4", "next-block", root(), SetInfo()),
    case("CHAIN-5", "next-number", root(SetInfo()), SetInfo()),
    case("CHAIN-6", "next-number", root(SetInfo()), SetInfo()),
    case("CHAIN-7", "link-to-the-head", root(SetInfo()), SetInfo()),
    case("CHAIN-8", "equal-time", root(SetInfo()), SetInfo(), system_time=later(1)),
    case("CHAIN-9", "another-event", root(), SetInfo()),
    case("CHAIN-10", "data-in-a-root", root(schema()), add_rows(0, 0)),
    case("CHAIN-10", "transform-in-a-derivative", derivative(), TRANSFORM),
    case("CHAIN-13", "watermark-only", root(), AddData(new_watermark=later(0))),
    case(
        "CHAIN-13",
        "source-state-only",
        root(),
        AddData(new_source_state=SourceState(source_name="a", kind="b", value="c")),
    ),
    case("CHAIN-14", "watermark-rises", root(*WITH_ROWS), AddData(prev_offset=9, new_watermark=later(10))),
    case(
        "CHAIN-14",
        "input-advances",
        derivative(*WITH_STEP),
        second_step(new_data=None, new_watermark=later(9)),
    ),
    case("CHAIN-15", "one-row", root(schema()), add_rows(0, 0)),
    case("CHAIN-16", "largest-offset", root(schema()), add_rows(0, 2**63 - 1, new_watermark=None)),
    case("CHAIN-17", "prev-offset-carried", root(*WITH_ROWS), add_rows(10, 11)),
    case(
        "CHAIN-17",
        "prev-offset-carried-over-a-block-without-rows",
        root(*WITH_ROWS, AddData(prev_offset=9, new_watermark=later(10))),
        add_rows(10, 11),
    ),
    case("CHAIN-18", "none-at-first", root(schema()), add_rows(0, 9)),
    case("CHAIN-19", "rows-go-on", root(*WITH_ROWS), add_rows(10, 10)),
    case("CHAIN-20", "schema-there", root(schema()), add_rows(0, 9)),
    case("CHAIN-20", "no-rows-no-schema", root(), AddData(new_watermark=later(0))),
    case("CHAIN-21", "sha3-256", root(schema()), add_rows(0, 9, new_checkpoint=checkpoint("a"))),
    case("CHAIN-22", "arrow0", root(schema()), add_rows(0, 9)),
    case(
        "CHAIN-23",
        "checkpoint-carried",
        root(schema(), add_rows(0, 9, new_checkpoint=checkpoint("a"))),
        add_rows(10, 19, prev_checkpoint=hash_of("a")),
    ),
    case(
        "CHAIN-23",
        "checkpoint-dropped",
        root(
            schema(),
            add_rows(0, 9, new_checkpoint=checkpoint("a")),
            add_rows(10, 19, prev_checkpoint=hash_of("a")),
        ),
        add_rows(20, 29),
    ),
    case("CHAIN-24", "watermark-stays", root(*WITH_ROWS), add_rows(10, 19, new_watermark=later(9))),
    case("CHAIN-25", "defined-inputs", derivative(TRANSFORM, schema()), FIRST_STEP),
    case("CHAIN-25", "inputs-of-the-last-step", derivative(*WITH_STEP), second_step()),
    case("CHAIN-26", "block-advances", derivative(*WITH_STEP), second_step()),
    case("CHAIN-27", "offset-advances", derivative(*WITH_STEP), second_step()),
    case(
        "CHAIN-27",
        "block-without-rows",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 1, new_offset=None), step(INPUT_B, None, None))),
    ),
    case("CHAIN-28", "from-the-last-block", derivative(*WITH_STEP), second_step()),
    case(
        "CHAIN-28",
        "over-a-step-without-new-blocks",
        derivative(*WITH_STEP, second_step(query_inputs=(step(INPUT_A, 0, None), step(INPUT_B, None, 0)))),
        second_step(
            query_inputs=(step(INPUT_A, 0, 1), step(INPUT_B, 0, None)),
            prev_offset=19,
            new_data=rows(20, 20),
            new_watermark=later(30),
        ),
    ),
    case("CHAIN-29", "both", derivative(*WITH_STEP), second_step()),
    case("CHAIN-30", "from-the-beginning", derivative(TRANSFORM, schema()), FIRST_STEP),
    case("CHAIN-31", "two-steps", derivative(), transform(INPUT_A, transform=sql("select 1", "select * from step0"))),
    case("CHAIN-31", "no-preprocess", root(), polling_source()),
    case("CHAIN-32", "ddl", root(), push_source(read=ReadStepNdJson(ddl_schema=("a INT",)))),
    case("CHAIN-33", "two-push-sources", root(push_source("a")), push_source("b")),
    case("CHAIN-33", "polling-source-replaced", root(polling_source()), polling_source()),
    case("CHAIN-34", "redefined", root(push_source()), push_source(read=ReadStepCsv())),
    case("CHAIN-35", "chain-id-0", root(), polling_source(fetch=FetchStepEthereumLogs(chain_id=0))),
    case("CHAIN-36", "few", root(push_source("a")), push_source("b")),
    case("CHAIN-37", "one", derivative(), transform(INPUT_A)),
    case("CHAIN-52", "the-same-again", derivative(*WITH_STEP), transform(INPUT_A)),
    case("CHAIN-53", "another-query", derivative(*WITH_STEP), transform(INPUT_A)),
    late_case("CHAIN-53", "the-last-one", MAX_DEFINITIONS - 1, root(), push_source("a")),
    late_case("CHAIN-53", "what-is-said-of-it", MAX_DEFINITIONS, root(), SetInfo(description="a")),
    late_case("CHAIN-53", "data", MAX_DEFINITIONS - 1, root(schema()), add_rows(0, 9)),
    case("CHAIN-30", "back-where-it-was", derivative(*AWAY_AND_BACK), third_step(step(INPUT_A, 0, 3))),
    case("CHAIN-38", "ids-and-aliases", derivative(), TRANSFORM),
    case("CHAIN-39", "distinct", derivative(), TRANSFORM),
    case("CHAIN-40", "distinct", derivative(), TRANSFORM),
    case("CHAIN-41", "others", derivative(), TRANSFORM),
    case("CHAIN-42", "schema", root(), schema()),
    case("CHAIN-43", "odf-form", root(), schema()),
    case("CHAIN-44", "distinct", root(), schema(optional("a"), optional("b"))),
    case(
        "CHAIN-45",
        "unit-and-zone-by-default",
        root(),
        columns(
            *SYSTEM_COLUMNS[:2], *(DataField(name=n, type=DataTypeTimestamp()) for n in ("system_time", "event_time"))
        ),
    ),
    case(
        "CHAIN-45",
        "event-time-a-date",
        root(),
        columns(*SYSTEM_COLUMNS[:3], DataField(name="event_time", type=DataTypeDate())),
    ),
    case(
        "CHAIN-45",
        "renamed",
        root(SetVocab(offset_column="n")),
        columns(DataField(name="n", type=DataTypeInt64()), *SYSTEM_COLUMNS[1:]),
    ),
    case("CHAIN-46", "another-order", root(schema(optional("a"), optional("b"))), schema(optional("b"), optional("a"))),
    case(
        "CHAIN-47",
        "optional-field-added",
        root(schema(nested("a", optional("x")))),
        schema(nested("a", optional("x"), optional("y")), optional("b")),
    ),
    case(
        "CHAIN-47",
        "attributes-changed",
        root(schema(optional("a"))),
        schema(replace(optional("a"), extra=ExtraAttributes.of({"opendatafabric.org/description": "b"}))),
    ),
    case("CHAIN-48", "four-names", root(), SetVocab(offset_column="n")),
    case("CHAIN-49", "before-the-schema", root(), SetVocab(offset_column="n")),
]


OTHER_HASH = Multihash(SHA2_256, b"\x02" * 32)

# Rules that bind everybody.
BROKEN = [
    case("CHAIN-1", "another-event", ChainBuilder(), SetInfo()),
    case("CHAIN-2", "link", ChainBuilder(), SEED, prev_block_hash=hash_of("a")),
    case("CHAIN-3", "number-1", ChainBuilder(), SEED, sequence_number=1),
    pytest.param(Case("CHAIN-4", (chain := root(SetInfo())), chain.blocks[-1]), id="CHAIN-4 head-again"),
    case("CHAIN-5", "same-number", root(SetInfo()), SetInfo(description="b"), sequence_number=1),
    pytest.param(Case("CHAIN-5", (chain := root(SetInfo())), chain.blocks[0]), id="CHAIN-5 earlier-block"),
    case("CHAIN-6", "number-skipped", root(SetInfo()), SetInfo(), sequence_number=3),
    case("CHAIN-7", "other-link", root(SetInfo()), SetInfo(), prev_block_hash=hash_of("a")),
    case("CHAIN-7", "no-link", root(SetInfo()), SetInfo(), prev_block_hash=None),
    case(
        "CHAIN-7",
        "same-digest-other-kind",
        root(),
        SetInfo(),
        prev_block_hash=Multihash(SHA2_256, root().blocks[0].hash.digest),
    ),
    case("CHAIN-8", "earlier", root(SetInfo()), SetInfo(), system_time=later(0)),
    case("CHAIN-9", "second-seed", root(), SEED),
    case("CHAIN-10", "data-in-a-derivative", derivative(schema()), add_rows(0, 0)),
    case("CHAIN-10", "push-source-in-a-derivative", derivative(), push_source()),
    case("CHAIN-10", "transform-in-a-root", root(), TRANSFORM),
    case("CHAIN-10", "step-in-a-root", root(schema()), FIRST_STEP),
    case("CHAIN-11", "unknown-push-source", root(push_source("a")), DisablePushSource(source_name="b")),
    case("CHAIN-11", "no-polling-source", root(), DisablePollingSource()),
    case("CHAIN-11", "twice", root(polling_source(), DisablePollingSource()), DisablePollingSource()),
    case("CHAIN-13", "empty-add-data", root(*WITH_ROWS), AddData(prev_offset=9)),
    case("CHAIN-13", "only-inputs", derivative(*WITH_STEP), second_step(new_data=None, new_watermark=None)),
    case("CHAIN-14", "same-watermark", root(*WITH_ROWS), AddData(prev_offset=9, new_watermark=later(9))),
    case(
        "CHAIN-14",
        "same-checkpoint",
        root(schema(), add_rows(0, 9, new_checkpoint=checkpoint("a"))),
        AddData(prev_offset=9, prev_checkpoint=hash_of("a"), new_checkpoint=checkpoint("a"), new_watermark=later(9)),
    ),
    case(
        "CHAIN-14",
        "same-source-state",
        root(AddData(new_source_state=SourceState(source_name="a", kind="b", value="c"))),
        AddData(new_source_state=SourceState(source_name="a", kind="b", value="c")),
    ),
    case(
        "CHAIN-14",
        "no-input-advances",
        derivative(*WITH_STEP),
        second_step(
            new_data=None, new_watermark=later(9), query_inputs=(step(INPUT_A, 0, None), step(INPUT_B, None, None))
        ),
    ),
    case(
        "CHAIN-15",
        "reversed",
        root(*WITH_ROWS),
        add_rows(10, 10, new_data=replace(rows(10, 10), offset_interval=replace(rows(10, 10).offset_interval, end=9))),
    ),
    case("CHAIN-16", "too-large", root(schema()), add_rows(0, 2**63, new_watermark=None)),
    case("CHAIN-17", "another", root(*WITH_ROWS), add_rows(9, 11)),
    case("CHAIN-17", "forgotten", root(*WITH_ROWS), add_rows(10, 11, prev_offset=None)),
    case("CHAIN-19", "gap", root(*WITH_ROWS), add_rows(11, 12, prev_offset=9)),
    case("CHAIN-19", "overlap", root(*WITH_ROWS), add_rows(9, 12, prev_offset=9)),
    case("CHAIN-19", "not-from-0", root(schema()), add_rows(1, 2, prev_offset=None)),
    case("CHAIN-20", "no-schema", root(), add_rows(0, 9)),
    case("CHAIN-21", "slice", root(schema()), add_rows(0, 9, new_data=replace(rows(0, 9), physical_hash=OTHER_HASH))),
    case("CHAIN-21", "checkpoint", root(), AddData(new_checkpoint=replace(checkpoint("a"), physical_hash=OTHER_HASH))),
    case("CHAIN-23", "never-written", root(schema()), add_rows(0, 9, prev_checkpoint=hash_of("a"))),
    case("CHAIN-23", "forgotten", root(schema(), add_rows(0, 9, new_checkpoint=checkpoint("a"))), add_rows(10, 19)),
    case("CHAIN-25", "no-definition", derivative(schema()), FIRST_STEP),
    case(
        "CHAIN-25",
        "another-order",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_B, None, 0), step(INPUT_A, 0, 1))),
    ),
    case("CHAIN-25", "one-missing", derivative(*WITH_STEP), second_step(query_inputs=(step(INPUT_A, 0, 1),))),
    case("CHAIN-25", "redefined", derivative(*WITH_STEP, transform(INPUT_A)), second_step()),
    case(
        "CHAIN-26",
        "same-block",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 0, new_offset=None), step(INPUT_B, None, 0))),
    ),
    case(
        "CHAIN-27",
        "same-row",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 1, new_offset=9), step(INPUT_B, None, 0))),
    ),
    case(
        "CHAIN-27",
        "earlier-row",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 1, new_offset=8), step(INPUT_B, None, 0))),
    ),
    case(
        "CHAIN-28",
        "another-block",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 1, prev_block_hash=hash_of("x")), step(INPUT_B, None, 0))),
    ),
    case(
        "CHAIN-28",
        "another-row",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 1, prev_offset=8), step(INPUT_B, None, 0))),
    ),
    case(
        "CHAIN-29",
        "rows-only",
        derivative(*WITH_STEP),
        second_step(query_inputs=(step(INPUT_A, 0, 1, new_block_hash=None), step(INPUT_B, None, 0))),
    ),
    case("CHAIN-31", "short-form", derivative(), transform(INPUT_A, transform=replace(sql("a"), query="a"))),
    case("CHAIN-31", "no-query", derivative(), transform(INPUT_A, transform=sql(queries=()))),
    case("CHAIN-31", "absent-queries", root(), push_source(preprocess=sql(queries=None))),
    case(
        "CHAIN-31",
        "last-with-alias",
        root(),
        polling_source(preprocess=sql(queries=(SqlQueryStep(alias="a", query="b"),))),
    ),
    case(
        "CHAIN-31",
        "first-without-alias",
        root(),
        polling_source(preprocess=sql(queries=(SqlQueryStep(query="b"),) * 2)),
    ),
    case("CHAIN-32", "both", root(), push_source(read=ReadStepNdJson(ddl_schema=(), schema=DataSchema(fields=())))),
    case("CHAIN-33", "push-beside-polling", root(polling_source()), push_source()),
    case("CHAIN-33", "polling-beside-push", root(push_source()), polling_source()),
    case("CHAIN-34", "the-same", root(push_source()), push_source()),
    case("CHAIN-34", "the-same-by-default", root(push_source()), push_source(read=ReadStepNdJson(encoding="utf8"))),
    case("CHAIN-35", "neither", root(), polling_source(fetch=FetchStepEthereumLogs(filter="a"))),
    case(
        "CHAIN-36",
        "too-many",
        root(*(push_source(f"s{n}") for n in range(MAX_PUSH_SOURCES))),
        push_source("one-more"),
    ),
    case("CHAIN-37", "none", derivative(), transform()),
    case(
        "CHAIN-37",
        "too-many",
        derivative(),
        transform(*(DatasetId(n.to_bytes(32, "big")) for n in range(MAX_INPUTS + 1))),
    ),
    case(
        "CHAIN-52",
        "too-many-with-those-before",
        derivative(*WITH_STEP),
        transform(*(DatasetId(n.to_bytes(32, "big")) for n in range(MAX_INPUTS - 1))),
    ),
    late_case("CHAIN-53", "sources", MAX_DEFINITIONS, root(), push_source("a")),
    late_case("CHAIN-53", "queries", MAX_DEFINITIONS, derivative(), transform(INPUT_A)),
    late_case("CHAIN-53", "schemas", MAX_DEFINITIONS, root(), schema()),
    case("CHAIN-38", "by-name", derivative(), transform(inputs=(TransformInput(dataset_ref="a", alias="a"),))),
    case("CHAIN-38", "no-alias", derivative(), transform(inputs=(TransformInput(dataset_ref=str(INPUT_A)),))),
    case("CHAIN-39", "twice", derivative(), transform(INPUT_A, INPUT_A)),
    case(
        "CHAIN-39",
        "twice-in-two-bases",
        derivative(),
        transform(
            inputs=(
                TransformInput(dataset_ref=str(INPUT_A), alias="a"),
                TransformInput(dataset_ref="did:odf:F" + str(INPUT_A).removeprefix("did:odf:f").upper(), alias="b"),
            )
        ),
    ),
    case("CHAIN-41", "itself", derivative(), transform(INPUT_A, DATASET)),
    case("CHAIN-42", "neither", root(), SetDataSchema()),
    case("CHAIN-42", "both", root(), replace(schema(), raw_arrow_schema=b"a")),
    case("CHAIN-46", "the-same", root(schema()), schema()),
    case(
        "CHAIN-46",
        "the-same-by-default",
        root(schema(DataField(name="a", type=DataTypeTimestamp()))),
        schema(DataField(name="a", type=DataTypeTimestamp(timezone="UTC"))),
    ),
    case("CHAIN-47", "removed", root(schema(optional("a"), optional("b"))), schema(optional("a"))),
    case("CHAIN-47", "nested-removed", root(schema(nested("a", optional("x")))), schema(nested("a", optional("y")))),
    case(
        "CHAIN-47",
        "another-type",
        root(schema(optional("a"))),
        schema(DataField(name="a", type=DataTypeOption(inner=DataTypeInt64()))),
    ),
    case(
        "CHAIN-47", "became-required", root(schema(optional("a"))), schema(DataField(name="a", type=DataTypeString()))
    ),
    case(
        "CHAIN-47", "became-optional", root(schema(DataField(name="a", type=DataTypeString()))), schema(optional("a"))
    ),
    case(
        "CHAIN-47",
        "required-added",
        root(schema(optional("a"))),
        schema(optional("a"), DataField(name="b", type=DataTypeString())),
    ),
    case(
        "CHAIN-47",
        "length-of-lists",
        root(schema(DataField(name="a", type=DataTypeList(item_type=DataTypeString())))),
        schema(DataField(name="a", type=DataTypeList(item_type=DataTypeString(), fixed_length=2))),
    ),
]

# Rules that bind our own blocks, and are reported in those of others.
REPORTED = [
    case("CHAIN-12", "push", root(push_source("a")), DisablePushSource(source_name="a")),
    case("CHAIN-12", "polling", root(polling_source()), DisablePollingSource()),
    case("CHAIN-18", "first-with-prev-offset", root(schema()), add_rows(10, 19)),
    case(
        "CHAIN-22", "sha3-256", root(schema()), add_rows(0, 9, new_data=replace(rows(0, 9), logical_hash=hash_of("a")))
    ),
    case("CHAIN-24", "falls", root(*WITH_ROWS), add_rows(10, 19, new_watermark=later(8))),
    case("CHAIN-24", "disappears", root(*WITH_ROWS), add_rows(10, 19, new_watermark=None)),
    case(
        "CHAIN-24",
        "is-below-the-highest",
        root(*WITH_ROWS, add_rows(10, 19, new_watermark=later(5))),
        add_rows(20, 29, new_watermark=later(6)),
    ),
    case(
        "CHAIN-30",
        "first-step-from-the-middle",
        derivative(TRANSFORM, schema()),
        replace(FIRST_STEP, query_inputs=(step(INPUT_A, 0, 1), step(INPUT_B, None, None))),
    ),
    case("CHAIN-30", "back-behind-a-gap", derivative(*AWAY_AND_BACK), third_step(step(INPUT_A, 2, 3))),
    case("CHAIN-30", "back-to-the-beginning", derivative(*AWAY_AND_BACK), third_step(step(INPUT_A, None, 3))),
    case(
        "CHAIN-40",
        "same-but-for-case",
        derivative(),
        transform(
            inputs=(
                TransformInput(dataset_ref=str(INPUT_A), alias="a"),
                TransformInput(dataset_ref=str(INPUT_B), alias="A"),
            )
        ),
    ),
    case("CHAIN-43", "arrow", root(), SetDataSchema(raw_arrow_schema=b"a")),
    case("CHAIN-44", "twice", root(), schema(optional("a"), optional("a"))),
    case("CHAIN-45", "missing", root(), columns(*SYSTEM_COLUMNS[:3])),
    case(
        "CHAIN-45",
        "optional",
        root(),
        columns(DataField(name="offset", type=DataTypeOption(inner=DataTypeInt64())), *SYSTEM_COLUMNS[1:]),
    ),
    case("CHAIN-45", "usual-names-after-renaming", root(SetVocab(offset_column="n")), schema()),
    case("CHAIN-48", "same-name", root(), SetVocab(offset_column="op")),
    case("CHAIN-48", "empty-name", root(), SetVocab(offset_column="")),
    case("CHAIN-49", "after-the-schema", root(schema()), SetVocab(offset_column="n")),
]


@pytest.mark.parametrize("obeyed", OBEYED)
def test_block_that_obeys_is_accepted_even_from_us(obeyed: Case) -> None:
    state, warnings = obeyed.judge(Strictness.OWN)
    assert warnings == []
    assert state.head == obeyed.block.hash


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("strictness", Strictness)
def test_block_that_breaks_a_rule_is_rejected_with_clause_number_and_facts(
    broken: Case, strictness: Strictness
) -> None:
    with pytest.raises(RejectedError) as caught:
        broken.judge(strictness)
    assert caught.value.rule.split()[0] == broken.clause
    assert caught.value.sequence_number == broken.block.sequence_number
    assert str(caught.value).startswith(f"block {broken.block.sequence_number} breaks {broken.clause} ")
    assert caught.value.expected is not None


@pytest.mark.parametrize("reported", REPORTED)
def test_block_that_breaks_a_rule_of_ours_is_rejected_from_us_and_reported_from_others(reported: Case) -> None:
    with pytest.raises(RejectedError) as caught:
        reported.judge(Strictness.OWN)
    assert caught.value.rule.split()[0] == reported.clause
    state, warnings = reported.judge(Strictness.FOREIGN)
    assert any(f"breaks {reported.clause} " in warning for warning in warnings)
    assert state.head == reported.block.hash


def test_every_rule_has_a_block_that_obeys_and_one_that_breaks_it() -> None:
    clauses = {rule.clause for rule in (*FIRST_BLOCK_RULES, *RULES)}
    assert {param.values[0].clause for param in (*BROKEN, *REPORTED)} == clauses
    # A source cannot be disabled without breaking CHAIN-12, so obeying CHAIN-11 and 12 means not to disable any.
    assert {param.values[0].clause for param in OBEYED} == clauses - {"CHAIN-11", "CHAIN-12"}


def test_disabled_push_source_of_others_makes_room_for_a_polling_source() -> None:
    chain = root(push_source("a"), DisablePushSource(source_name="a"), polling_source())
    state = chain.state()
    assert state is not None
    assert state.push_sources == ()
    assert state.has_polling_source


def test_block_without_source_state_forgets_the_last_one() -> None:
    known = SourceState(source_name="a", kind="b", value="c")
    chain = root(AddData(new_source_state=known), AddData(new_watermark=later(0)))
    state, _warnings = append(
        chain.state(), chain.next(AddData(new_source_state=known, new_watermark=later(0))), strictness=Strictness.OWN
    )
    assert state.source_state == known


def test_redefinition_forgets_the_order_of_inputs_but_not_their_progress() -> None:
    chain = derivative(*WITH_STEP, transform(INPUT_B, INPUT_A))
    turned = second_step(query_inputs=(step(INPUT_B, None, 0), step(INPUT_A, 0, 1)))
    state, _warnings = append(chain.state(), chain.next(turned), strictness=Strictness.OWN)
    assert [item.offset for item in state.inputs] == [9, 19]


def test_schema_after_one_in_arrow_form_is_not_compared() -> None:
    chain = root(SetDataSchema(raw_arrow_schema=b"a"))
    state, _warnings = append(chain.state(), chain.next(schema()), strictness=Strictness.OWN)
    assert state.schema is not None
    assert not state.has_legacy_schema


def test_set_transform_is_not_restricted_by_steps_before() -> None:
    chain = derivative(*WITH_STEP)
    state, _warnings = append(
        chain.state(), chain.next(SetTransform(inputs=TRANSFORM.inputs, transform=sql("b"))), strictness=Strictness.OWN
    )
    assert state.transform_inputs == (INPUT_A, INPUT_B)
