"""Blocks that add data must add something.

Source: clauses CHAIN-13 to CHAIN-14 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.events.equality import means_the_same


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


RULES = (_data_event_is_not_empty, _data_event_changes_something)
