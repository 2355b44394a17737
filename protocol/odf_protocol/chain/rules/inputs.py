"""A step of a derivative dataset takes its inputs from where the last step left them.

Source: clauses CHAIN-25 to CHAIN-30 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import ExecuteTransform


@event_rule("CHAIN-25", ExecuteTransform, odf="InvalidEvent: inputs must be listed")
def _inputs_are_the_defined_ones(state: ChainState, event: ExecuteTransform) -> Breach | None:
    if state.transform_inputs is None:
        return Breach("SetTransform before the first step", "none")
    found = tuple(item.dataset_id for item in event.query_inputs)
    if found != state.transform_inputs:
        return Breach(", ".join(map(str, state.transform_inputs)), ", ".join(map(str, found)))
    return None


@event_rule("CHAIN-26", ExecuteTransform, odf="InvalidEvent: invalid input block")
def _input_block_advances(_state: ChainState, event: ExecuteTransform) -> Breach | None:
    for item in event.query_inputs:
        if item.new_block_hash is not None and item.new_block_hash == item.prev_block_hash:
            return Breach(f"{item.dataset_id} to advance, or no new_block_hash", item.new_block_hash)
    return None


# ODF asks for another offset; a smaller one would read rows again.
@event_rule("CHAIN-27", ExecuteTransform, odf="InvalidEvent: invalid input offset interval")
def _input_offset_advances(_state: ChainState, event: ExecuteTransform) -> Breach | None:
    for item in event.query_inputs:
        if item.new_offset is not None and item.prev_offset is not None and item.new_offset <= item.prev_offset:
            return Breach(f"{item.dataset_id} beyond row {item.prev_offset}", item.new_offset)
    return None


@event_rule("CHAIN-28", ExecuteTransform, odf="InvalidEvent: input prevBlockHash / prevOffset")
def _input_continues(state: ChainState, event: ExecuteTransform) -> Breach | None:
    known = {progress.dataset_id: progress for progress in state.inputs}
    for item in event.query_inputs:
        last = known.get(item.dataset_id)
        if last is not None and (item.prev_block_hash, item.prev_offset) != (last.block_hash, last.offset):
            return Breach(
                f"{item.dataset_id} from block {last.block_hash}, row {last.offset}",
                f"block {item.prev_block_hash}, row {item.prev_offset}",
            )
    return None


@event_rule("CHAIN-29", ExecuteTransform, odf="InvalidEvent: new offset without new block")
def _input_rows_come_with_a_block(_state: ChainState, event: ExecuteTransform) -> Breach | None:
    for item in event.query_inputs:
        if item.new_offset is not None and item.new_block_hash is None:
            return Breach(f"new_block_hash of {item.dataset_id}", f"only new_offset {item.new_offset}")
    return None


# The reference implementation does not look at the first step, nor at steps before a redefinition, so foreign chains
# may begin in the middle. What such a chain proves is another matter: see ``coverage``.
@event_rule("CHAIN-30", ExecuteTransform, odf=None, binds_foreign=False)
def _new_input_is_taken_from_its_beginning(state: ChainState, event: ExecuteTransform) -> Breach | None:
    known = state.progress_by_input()
    carried = {progress.dataset_id for progress in state.inputs}
    for item in event.query_inputs:
        found = (item.prev_block_hash, item.prev_offset)
        last = known.get(item.dataset_id)
        if item.dataset_id in carried or found == ((None, None) if last is None else (last.block_hash, last.offset)):
            continue
        expected = "its beginning" if last is None else f"block {last.block_hash}, row {last.offset}"
        return Breach(f"{item.dataset_id} from {expected}", f"block {item.prev_block_hash}, row {item.prev_offset}")
    return None


RULES = (
    _inputs_are_the_defined_ones,
    _input_block_advances,
    _input_offset_advances,
    _input_continues,
    _input_rows_come_with_a_block,
    _new_input_is_taken_from_its_beginning,
)
