"""Row numbers go on where they stopped: no row is missing, none comes twice.

Source: clauses CHAIN-15 to CHAIN-19 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import AddData, ExecuteTransform

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


RULES = (
    _interval_is_not_reversed,
    _offsets_fit_the_column,
    _prev_offset_is_the_last,
    _first_prev_offset_is_absent,
    _rows_follow_the_last,
)
