import pytest

from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.chain import InputProgress
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddData,
    DataSlice,
    Event,
    ExecuteTransformInput,
    OffsetInterval,
    SetInfo,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import STEP_BOUND, InputHead, StepBound, find_step_end, next_interval, plan_input
from support.chains import INPUT_A, hash_of, later, logical_hash_of, optional, schema


def data_slice(start: int, end: int) -> DataSlice:
    return DataSlice(
        logical_hash=logical_hash_of(f"{start}"),
        physical_hash=hash_of(f"file {start}"),
        offset_interval=OffsetInterval(start=start, end=end),
        size=100,
    )


def block(event: Event, number: int = 5) -> Block:
    raw = encode_block(event, system_time=later(number), prev_block_hash=hash_of("before"), sequence_number=number)
    return decode_block(raw, expected_hash=None)


def interval(**fields: object) -> ExecuteTransformInput:
    return ExecuteTransformInput(dataset_id=INPUT_A, **fields)  # type: ignore[arg-type]


def test_first_step_reads_from_the_seed_to_the_head() -> None:
    assert next_interval(INPUT_A, None, InputHead(hash_of("head"), 41)) == interval(
        new_block_hash=hash_of("head"), new_offset=41
    )


def test_next_step_goes_on_where_the_last_one_stopped() -> None:
    previous = InputProgress(INPUT_A, hash_of("old"), 41)

    assert next_interval(INPUT_A, previous, InputHead(hash_of("head"), 50)) == interval(
        prev_block_hash=hash_of("old"), new_block_hash=hash_of("head"), prev_offset=41, new_offset=50
    )


def test_step_after_one_without_news_carries_what_it_carried() -> None:
    previous = InputProgress(INPUT_A, hash_of("old"), 41)

    assert next_interval(INPUT_A, previous, None) == interval(prev_block_hash=hash_of("old"), prev_offset=41)


def test_new_blocks_without_rows_leave_the_offset_out() -> None:
    previous = InputProgress(INPUT_A, hash_of("old"), 41)

    planned = next_interval(INPUT_A, previous, InputHead(hash_of("head"), 41))

    assert (planned.prev_offset, planned.new_offset) == (41, None)


def test_rows_and_watermarks_of_the_interval_are_collected_in_order() -> None:
    watermark = Timestamp.parse("2024-01-01T00:00:00Z")
    blocks = [
        block(AddData(new_data=data_slice(0, 9), new_watermark=watermark), 3),
        block(SetInfo(description="in between"), 4),
        block(AddData(prev_offset=9, new_watermark=later(60)), 5),
        block(AddData(prev_offset=9, new_data=data_slice(10, 14), new_watermark=later(60)), 6),
    ]

    planned = plan_input(interval(new_block_hash=hash_of("x"), new_offset=14), blocks)

    assert [item.offset_interval.start for item in planned.slices] == [0, 10]
    assert planned.offset_interval == OffsetInterval(start=0, end=14)
    assert [mark.event_time for mark in planned.watermarks] == [watermark, later(60), later(60)]
    assert [mark.system_time for mark in planned.watermarks] == [later(3), later(5), later(6)]


def test_interval_with_only_a_watermark_is_not_empty() -> None:
    planned = plan_input(
        interval(prev_offset=9, new_block_hash=hash_of("x")), [block(AddData(prev_offset=9, new_watermark=later(1)))]
    )

    assert planned.offset_interval is None
    assert not planned.is_empty


def test_interval_without_data_blocks_is_empty() -> None:
    assert plan_input(interval(new_block_hash=hash_of("x")), [block(SetInfo(description="x"))]).is_empty


@pytest.mark.parametrize("claimed", [None, 8, 10], ids=["left-out", "too-few", "too-many"])
def test_recorded_offset_that_its_blocks_do_not_state_is_rejected(claimed: int | None) -> None:
    recorded = interval(new_block_hash=hash_of("x"), new_offset=claimed)

    with pytest.raises(RejectedError, match="PLAN-5") as caught:
        plan_input(recorded, [block(AddData(new_data=data_slice(0, 9)))])

    assert caught.value.expected == "9"


# Where a step ends (PLAN-13)


def rows_of(*counts: int, first: int = 0) -> list[Block]:
    """Blocks with so many rows each, of 100 bytes."""
    blocks = []
    for number, count in enumerate(counts, start=5):
        blocks.append(block(AddData(new_data=data_slice(first, first + count - 1)), number))
        first += count
    return blocks


@pytest.mark.parametrize(
    ("bound", "taken"),
    [
        pytest.param(STEP_BOUND, 3, id="everything-that-fits"),
        pytest.param(StepBound(20, 1_000), 2, id="up-to-the-rows"),
        pytest.param(StepBound(19, 1_000), 1, id="a-block-is-not-cut"),
        pytest.param(StepBound(1, 1_000), 1, id="one-block-at-least"),
        pytest.param(StepBound(1_000, 200), 2, id="up-to-the-bytes"),
    ],
)
def test_step_ends_before_the_block_with_which_it_passes_its_bound(bound: StepBound, taken: int) -> None:
    blocks = rows_of(10, 10, 10)

    assert find_step_end(None, blocks, bound) == InputHead(blocks[taken - 1].hash, taken * 10 - 1)


def test_blocks_without_rows_belong_to_the_step_before_them() -> None:
    blocks = [*rows_of(10), block(SetInfo(description="x"), 6), *rows_of(10, first=10)]

    assert find_step_end(None, blocks, StepBound(10, 1_000)) == InputHead(blocks[1].hash, 9)


def test_step_ends_where_the_schema_of_its_input_changes() -> None:
    blocks = [block(schema(), 4), *rows_of(10), block(schema(optional("b")), 6), *rows_of(10, first=10)]

    begun = InputProgress(INPUT_A, hash_of("a"), None)
    assert find_step_end(begun, blocks, STEP_BOUND) == InputHead(blocks[1].hash, 9)
    assert find_step_end(begun, blocks, None) == InputHead(blocks[3].hash, 19)
    # Else a step that gives nothing would be planned again for ever.
    assert find_step_end(begun, blocks, STEP_BOUND.widened()) == InputHead(blocks[3].hash, 19)
    # A new query may name a column that came since (SCHEMA-5).
    assert find_step_end(None, blocks, STEP_BOUND) == InputHead(blocks[3].hash, 19)
    previous = InputProgress(INPUT_A, blocks[1].hash, 9)
    assert find_step_end(previous, blocks[2:], STEP_BOUND) == InputHead(blocks[3].hash, 19)


def test_input_without_new_blocks_has_no_step_end() -> None:
    assert find_step_end(InputProgress(INPUT_A, hash_of("a"), 9), [], STEP_BOUND) is None


def test_new_blocks_without_rows_keep_the_row_that_was_reached() -> None:
    blocks = [block(SetInfo(description="x"))]

    assert find_step_end(InputProgress(INPUT_A, hash_of("a"), 9), blocks, STEP_BOUND) == InputHead(blocks[0].hash, 9)
