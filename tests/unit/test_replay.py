from dataclasses import replace

import pytest
from msgspec import structs

from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.events import (
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    SqlQueryStep,
    TransformSql,
)
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.signatures import Purpose, sign_document
from odf_protocol.step_metrics import RowsByOperation, StateSize, StepMetrics
from odf_protocol.step_record import (
    EngineIdentity,
    InputWatermark,
    StepInput,
    StepRecord,
    StepSlice,
    check_record_describes,
    hash_transform,
)
from odf_protocol.step_record_codec import decode_step_record, encode_step_record, sign_step_record
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.signing import DATASET_KEY, NODE_KEY, NOON, OTHER_KEY, dataset_of, did_key_of, some_hash

DATASET, INPUT = dataset_of(DATASET_KEY), dataset_of(OTHER_KEY)
QUERY = TransformSql(engine="spark", queries=(SqlQueryStep(alias="step", query="select 1"), SqlQueryStep(query="x")))
RECORD = StepRecord(
    dataset_id=DATASET,
    engine=EngineIdentity("spark", "4.3.0", some_hash("engine")),
    settings={"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"},
    limits={"memory_bytes": 2 << 30, "wall_ms": 600_000},
    transform=hash_transform(QUERY),
    vocabulary=Vocabulary(),
    inputs=(
        StepInput(
            dataset_id=INPUT,
            alias="in",
            vocabulary=Vocabulary(event_time="date"),
            slices=(StepSlice(Multihash(ARROW0_SHA3_256, bytes(32)), some_hash("file")),),
            offset_interval=OffsetInterval(start=10, end=19),
            watermarks=(InputWatermark(NOON, Timestamp(0)),),
        ),
        StepInput(dataset_id=DATASET, alias="idle", vocabulary=Vocabulary(), slices=(), offset_interval=None),
    ),
    system_time=NOON,
    next_offset=5,
    prev_checkpoint=some_hash("checkpoint"),
    prev_watermark=Timestamp(0),
)


def step_block(**changes: object) -> Block:
    event = ExecuteTransform(
        query_inputs=(
            ExecuteTransformInput(
                dataset_id=INPUT,
                prev_block_hash=some_hash("a"),
                new_block_hash=some_hash("b"),
                prev_offset=9,
                new_offset=19,
            ),
            ExecuteTransformInput(dataset_id=DATASET, prev_block_hash=some_hash("c"), prev_offset=3),
        ),
        prev_checkpoint=some_hash("checkpoint"),
        prev_offset=4,
        new_watermark=NOON,
    )
    raw = encode_block(
        replace(event, **changes), system_time=NOON, prev_block_hash=some_hash("prev"), sequence_number=6
    )
    return decode_block(raw, expected_hash=None)


def test_record_survives_its_bytes() -> None:
    raw = sign_step_record(NODE_KEY, RECORD)
    found = decode_step_record(raw)
    assert (found.record, found.signer, found.raw) == (RECORD, did_key_of(NODE_KEY), raw)
    small = replace(RECORD, settings={}, limits={}, prev_checkpoint=None, prev_watermark=None)
    assert decode_step_record(sign_step_record(NODE_KEY, small)).record == small


STATISTICS = StepMetrics(
    rows_read=(10, None),
    rows_out=RowsByOperation(append=5, retract=1, correct_from=2, correct_to=3),
    late_rows=4,
    state_before=StateSize(rows=90, size_bytes=1000),
    state_after=StateSize(rows=100, size_bytes=1100),
    milliseconds={"computing": 7, "reading": 0},
)


def test_figures_survive_the_bytes_of_a_record_and_records_without_any_keep_theirs() -> None:
    record = replace(RECORD, statistics=STATISTICS)
    assert decode_step_record(sign_step_record(NODE_KEY, record)).record == record
    assert b"statistics" not in encode_step_record(RECORD)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"lateRows":4', b'"lateRows":-1'),
        (b'"retract":1', b'"retract":1.5'),
        (b'"rowsRead":[10,null]', b'"rowsRead":["10",null]'),
        (b'"milliseconds":{"computing":7,"reading":0}', b'"milliseconds":{"":7}'),
        (b'"lateRows":4,', b'"lateRows":4,"luckyRows":7,'),
    ],
)
def test_figures_that_are_none_are_rejected(old: bytes, new: bytes) -> None:
    payload = encode_step_record(replace(RECORD, statistics=STATISTICS))
    assert old in payload
    with pytest.raises(MalformedError):
        decode_step_record(sign_document(NODE_KEY, Purpose.STEP_RECORD, payload.replace(old, new)).to_bytes())


def with_figures(**changes: object) -> StepRecord:
    honest = StepMetrics(rows_read=(20, 4), rows_out=RowsByOperation(), late_rows=0)
    return replace(RECORD, statistics=structs.replace(honest, **changes))


def test_figures_fit_what_the_block_says_by_itself() -> None:
    check_record_describes(with_figures(), step_block(), DATASET)
    for changes in (
        {"rows_read": (21, 4)},
        {"rows_read": (20, 5)},
        {"rows_read": (20,)},
        {"rows_read": (20, 4, 0)},
        {"rows_out": RowsByOperation(retract=1)},
    ):
        with pytest.raises(RejectedError, match="block 6 breaks REPLAY-14 figures-fit-the-block"):
            check_record_describes(with_figures(**changes), step_block(), DATASET)


def test_record_has_one_identity_whoever_signs_it() -> None:
    one, other = (decode_step_record(sign_step_record(key, RECORD)) for key in (NODE_KEY, OTHER_KEY))
    assert one.raw != other.raw
    assert one.hash == other.hash == Multihash.of_sha3_256(encode_step_record(RECORD))


def test_order_of_settings_does_not_change_the_bytes_and_order_of_inputs_does() -> None:
    shuffled = replace(RECORD, settings=dict(reversed(RECORD.settings.items())))
    assert encode_step_record(shuffled) == encode_step_record(RECORD)
    assert encode_step_record(replace(RECORD, inputs=RECORD.inputs[::-1])) != encode_step_record(RECORD)


def test_transforms_differ_by_every_part() -> None:
    variants = [
        QUERY,
        replace(QUERY, engine="flink"),
        replace(QUERY, version="4"),
        replace(QUERY, queries=QUERY.queries[:1]),
        replace(QUERY, queries=None, query="select 1"),
        replace(QUERY, queries=(SqlQueryStep(query="select 1"), SqlQueryStep(query="x"))),
    ]
    assert len({hash_transform(variant) for variant in variants}) == len(variants)


def test_record_describes_its_block() -> None:
    check_record_describes(RECORD, step_block(), DATASET)
    first = replace(RECORD, next_offset=0, prev_checkpoint=None)
    check_record_describes(first, step_block(prev_offset=None, prev_checkpoint=None), DATASET)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"dataset_id": INPUT}, "same-dataset"),
        ({"system_time": Timestamp(0)}, "same-system-time"),
        ({"next_offset": 4}, "same-next-offset"),
        ({"prev_checkpoint": None}, "same-checkpoint"),
        ({"inputs": RECORD.inputs[:1]}, "same-inputs"),
        ({"inputs": RECORD.inputs[::-1]}, "same-inputs"),
        ({"inputs": (replace(RECORD.inputs[0], offset_interval=None), RECORD.inputs[1])}, "same-inputs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_record_of_another_step_is_rejected(changes: dict[str, object], rule: str) -> None:
    with pytest.raises(RejectedError, match=f"block 6 breaks REPLAY-6 {rule}"):
        check_record_describes(replace(RECORD, **changes), step_block(), DATASET)


def test_well_signed_nonsense_is_rejected() -> None:
    payload = encode_step_record(RECORD)
    for old, new in (
        (b'"version":1', b'"version":2'),
        (b'"end":19', b'"end":-1'),
        (b'"wall_ms":600000', b'"wall_ms":0.5'),
    ):
        raw = sign_document(NODE_KEY, Purpose.STEP_RECORD, payload.replace(old, new)).to_bytes()
        with pytest.raises(MalformedError):
            decode_step_record(raw)
    raw = sign_document(NODE_KEY, Purpose.STEP_RECORD, payload.replace(b'"end":19', b'"end":9')).to_bytes()
    with pytest.raises(RejectedError, match="REPLAY-4"):
        decode_step_record(raw)


def test_record_without_inputs_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="malformed"):
        encode_step_record(replace(RECORD, inputs=()))
