"""What a block that adds data may say: of rows, files, checkpoint and watermark.

Source: clauses CHAIN-13 to CHAIN-24 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.events.equality import means_the_same
from odf_protocol.multihash import ARROW0_SHA3_256, SHA3_256


@event_rule("CHAIN-13", AddData, ExecuteTransform, odf="NoOpEvent")
def _data_event_is_not_empty(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    news: list[object] = [event.new_data, event.new_checkpoint, event.new_watermark]
    if isinstance(event, AddData):
        news.append(event.new_source_state)
    if all(item is None for item in news):
        return Breach("data, checkpoint, watermark or source state", "none of them")
    return None


@event_rule("CHAIN-14", AddData, ExecuteTransform, odf="NoOpEvent")
def _data_event_changes_something(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    checkpoint = event.new_checkpoint.physical_hash if event.new_checkpoint else None
    if event.new_data or checkpoint != event.prev_checkpoint or event.new_watermark != state.watermark:
        return None
    match event:
        case AddData() if not means_the_same(event.new_source_state, state.source_state):
            return None
        case ExecuteTransform() if any(item.new_block_hash for item in event.query_inputs):
            return None
    return Breach("a change since the last block of data", "the same checkpoint, watermark and source")


MAX_OFFSET = (1 << 63) - 1  # the column is Int64, although the block could say UInt64


@event_rule("CHAIN-15", AddData, ExecuteTransform, odf="InvalidEvent: offset interval")
def _interval_is_not_reversed(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.new_data and event.new_data.offset_interval.end < event.new_data.offset_interval.start:
        interval = event.new_data.offset_interval
        return Breach(f"an end from {interval.start}", interval.end)
    return None


@event_rule("CHAIN-16", AddData, ExecuteTransform, odf=None)
def _offsets_fit_the_column(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    last = max(event.prev_offset or 0, event.new_data.offset_interval.end if event.new_data else 0)
    if last > MAX_OFFSET:
        return Breach(f"at most {MAX_OFFSET}", last)
    return None


@event_rule("CHAIN-17", AddData, ExecuteTransform, odf="InvalidEvent: carried prev offset")
def _prev_offset_is_the_last(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if state.has_data_block and event.prev_offset != state.last_offset:
        return Breach(f"prev_offset {state.last_offset}", event.prev_offset)
    return None


# The reference implementation does not look at the first, so chains that continue lost history may exist.
@event_rule("CHAIN-18", AddData, ExecuteTransform, odf=None, binds_foreign=False)
def _first_prev_offset_is_absent(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if not state.has_data_block and event.prev_offset is not None:
        return Breach("no prev_offset before the first rows", event.prev_offset)
    return None


# Binds everybody: whoever reads by row numbers would skip rows or read them twice.
@event_rule("CHAIN-19", AddData, ExecuteTransform, odf=None)
def _rows_follow_the_last(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    first = 0 if event.prev_offset is None else event.prev_offset + 1
    if event.new_data and event.new_data.offset_interval.start != first:
        return Breach(f"rows from {first}", f"rows from {event.new_data.offset_interval.start}")
    return None


@event_rule("CHAIN-20", AddData, ExecuteTransform, odf="InvalidEvent: SetDataSchema must be present")
def _schema_precedes_data(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.new_data and not state.has_schema:
        return Breach("SetDataSchema before the first rows", "none")
    return None


# Binds everybody: a file whose hash we cannot compute could be anything.
@event_rule("CHAIN-21", AddData, ExecuteTransform, odf=None)
def _files_are_named_by_sha3_256(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    for file in (event.new_data, event.new_checkpoint):
        if file and file.physical_hash.code != SHA3_256:
            return Breach("a physical hash of kind sha3-256", file.physical_hash)
    return None


# Foreign data with another logical hash can be kept, it only cannot be compared by re-execution.
@event_rule("CHAIN-22", AddData, ExecuteTransform, odf=None, binds_foreign=False)
def _rows_are_named_by_arrow0(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.new_data and event.new_data.logical_hash.code != ARROW0_SHA3_256:
        return Breach("a logical hash of kind arrow0-sha3-256", event.new_data.logical_hash)
    return None


@event_rule("CHAIN-23", AddData, ExecuteTransform, odf="InvalidEvent: input checkpoint")
def _checkpoint_is_the_last(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.prev_checkpoint != state.checkpoint:
        return Breach(f"prev_checkpoint {state.checkpoint}", event.prev_checkpoint)
    return None


# The reference engine lets the watermark of several inputs fall, or drops it, so such chains exist.
@event_rule("CHAIN-24", AddData, ExecuteTransform, odf=None, binds_foreign=False)
def _watermark_does_not_fall(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    highest = state.highest_watermark
    if highest is not None and (event.new_watermark is None or event.new_watermark < highest):
        return Breach(f"watermark {highest} or later", event.new_watermark)
    return None
