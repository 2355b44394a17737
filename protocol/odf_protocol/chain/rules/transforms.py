"""Queries and their inputs: of derivative datasets, and of what is done to new data of root datasets.

Source: clauses CHAIN-25 to CHAIN-31, CHAIN-37 to CHAIN-41 and CHAIN-52 of ``spec/chain.md``.
"""

from collections import Counter

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.events import AddPushSource, ExecuteTransform, SetPollingSource, SetTransform


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


MAX_INPUTS = 1_000  # guess: bounds the state and the cost of judging a step


@event_rule("CHAIN-31", AddPushSource, SetPollingSource, SetTransform, odf="InvalidEvent: transform not normalized")
def _query_is_normalized(_state: ChainState, event: AddPushSource | SetPollingSource | SetTransform) -> Breach | None:
    transform = event.transform if isinstance(event, SetTransform) else event.preprocess
    if transform is None:
        return None
    if transform.query is not None:
        return Breach("queries", "query")
    if not transform.queries:
        return Breach("at least one query", "none")
    *steps, last = transform.queries
    if last.alias is not None:
        return Breach("no alias of the last query", last.alias)
    if any(step.alias is None for step in steps):
        return Breach("an alias of every query but the last", "a query without alias")
    return None


@event_rule("CHAIN-37", SetTransform, odf="InvalidEvent: transform must have inputs")
def _transform_has_inputs(_state: ChainState, event: SetTransform) -> Breach | None:
    if not 1 <= len(event.inputs) <= MAX_INPUTS:
        return Breach(f"1 to {MAX_INPUTS} inputs", len(event.inputs))
    return None


@event_rule("CHAIN-38", SetTransform, odf="InvalidEvent: inputs must be resolved")
def _transform_inputs_are_resolved(_state: ChainState, event: SetTransform) -> Breach | None:
    for item in event.inputs:
        if _find_id(item.dataset_ref) is None:
            return Breach("a DID as dataset_ref", item.dataset_ref)
        if item.alias is None:
            return Breach(f"an alias of {item.dataset_ref}", "none")
    return None


@event_rule("CHAIN-39", SetTransform, odf="InvalidEvent: duplicate inputs")
def _transform_inputs_are_distinct(_state: ChainState, event: SetTransform) -> Breach | None:
    # By identity, not by text: one DID can be written in several bases.
    ids = Counter(_find_id(item.dataset_ref) for item in event.inputs)
    if repeated := [str(dataset_id) for dataset_id, count in ids.items() if count > 1]:
        return Breach("every input once", ", ".join(repeated))
    return None


@event_rule("CHAIN-40", SetTransform, odf=None, binds_foreign=False)
def _transform_aliases_are_distinct(_state: ChainState, event: SetTransform) -> Breach | None:
    aliases = [item.alias.lower() for item in event.inputs if item.alias is not None]
    if len(set(aliases)) < len(aliases):
        return Breach("every alias once", ", ".join(aliases))
    return None


# Binds everybody: a dataset that waits for itself never settles, and re-execution would not end.
@event_rule("CHAIN-41", SetTransform, odf=None)
def _transform_does_not_read_itself(state: ChainState, event: SetTransform) -> Breach | None:
    if any(_find_id(item.dataset_ref) == state.dataset_id for item in event.inputs):
        return Breach("inputs other than the dataset itself", state.dataset_id)
    return None


# Binds everybody: the progress of each input is kept for as long as the dataset lives (PLAN-9).
@event_rule("CHAIN-52", SetTransform, odf=None)
def _inputs_are_few_in_all(state: ChainState, event: SetTransform) -> Breach | None:
    ids = {_find_id(item.dataset_ref) for item in event.inputs} | state.progress_by_input().keys()
    if len(ids) > MAX_INPUTS:
        return Breach(f"at most {MAX_INPUTS} inputs over the life of the dataset", len(ids))
    return None


def _find_id(dataset_ref: str) -> DatasetId | None:
    try:
        return DatasetId.parse(dataset_ref)
    except OdfError:
        return None
