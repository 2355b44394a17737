"""How a chain begins, how a block hangs on the one before, and which events suit the dataset.

Source: clauses CHAIN-1 to CHAIN-12 of ``spec/chain.md``.
"""

from typing import Any

from odf_protocol.block import Block
from odf_protocol.chain.rule import Breach, block_rule, event_rule, first_block_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    Seed,
    SetPollingSource,
    SetTransform,
)


@first_block_rule("CHAIN-1", odf="FirstBlockMustBeSeed")
def _first_block_is_a_seed(block: Block) -> Breach | None:
    if not isinstance(block.event, Seed):
        return Breach("Seed", type(block.event).__name__)
    return None


@first_block_rule("CHAIN-2", odf="AppendingSeedBlockToNonEmptyChain")
def _first_block_has_no_link(block: Block) -> Breach | None:
    if block.prev_block_hash is not None:
        return Breach("no previous block", block.prev_block_hash)
    return None


@first_block_rule("CHAIN-3", odf="SequenceIntegrity")
def _first_block_has_number_0(block: Block) -> Breach | None:
    if block.sequence_number != 0:
        return Breach(0, block.sequence_number)
    return None


FIRST_BLOCK_RULES = (_first_block_is_a_seed, _first_block_has_no_link, _first_block_has_number_0)


@block_rule("CHAIN-4", odf=None)
def _block_is_not_repeated(state: ChainState, block: Block) -> Breach | None:
    if block.hash == state.head:
        return Breach(f"block {state.sequence_number + 1}", f"block {state.sequence_number} once more")
    return None


@block_rule("CHAIN-5", odf="SequenceIntegrity")
def _chain_does_not_fork(state: ChainState, block: Block) -> Breach | None:
    if block.sequence_number <= state.sequence_number:
        is_beside_the_head = block.sequence_number == state.sequence_number
        found = "another block" if is_beside_the_head else "an earlier block again, or another,"
        return Breach(f"block {state.sequence_number + 1}", f"{found} {block.sequence_number}: {block.hash}")
    return None


@block_rule("CHAIN-6", odf="SequenceIntegrity")
def _sequence_has_no_gap(state: ChainState, block: Block) -> Breach | None:
    if block.sequence_number > state.sequence_number + 1:
        return Breach(f"block {state.sequence_number + 1}", f"block {block.sequence_number}")
    return None


@block_rule("CHAIN-7", odf="PrevBlockNotFound")
def _link_is_the_head(state: ChainState, block: Block) -> Breach | None:
    if block.prev_block_hash != state.head:
        return Breach(f"link to {state.head}", block.prev_block_hash or "no link")
    return None


@block_rule("CHAIN-8", odf="SystemTimeIsNotMonotonic")
def _time_does_not_run_back(state: ChainState, block: Block) -> Breach | None:
    # Equal is allowed: blocks of one commit share their time.
    if block.system_time < state.system_time:
        return Breach(f"{state.system_time} or later", block.system_time)
    return None


@block_rule("CHAIN-9", odf="AppendingSeedBlockToNonEmptyChain")
def _seed_comes_only_first(state: ChainState, block: Block) -> Breach | None:
    if isinstance(block.event, Seed):
        return Breach(f"Seed only as block 0 of {state.dataset_id}", f"Seed as block {block.sequence_number}")
    return None


_ROOT_EVENTS = (AddData, SetPollingSource, AddPushSource, DisablePushSource, DisablePollingSource)
_DERIVATIVE_EVENTS = (SetTransform, ExecuteTransform)


# Binds everybody: data that was simply added to a derivative dataset would escape re-execution.
@event_rule("CHAIN-10", *_ROOT_EVENTS, *_DERIVATIVE_EVENTS, odf=None)
def _event_suits_the_kind(state: ChainState, event: Any) -> Breach | None:
    needed = DatasetKind.ROOT if isinstance(event, _ROOT_EVENTS) else DatasetKind.DERIVATIVE
    if state.kind is not needed:
        return Breach(f"{type(event).__name__} in a {needed.text} dataset", f"a {state.kind.text} dataset")
    return None


@event_rule("CHAIN-11", DisablePushSource, DisablePollingSource, odf=None)
def _disabled_source_is_in_force(state: ChainState, event: DisablePushSource | DisablePollingSource) -> Breach | None:
    match event:
        case DisablePushSource(source_name=name) if state.find_push_source(name) is None:
            return Breach("one of " + ", ".join(source.name for source in state.push_sources), name)
        case DisablePollingSource() if not state.has_polling_source:
            return Breach("a polling source to disable", "none")
    return None


# Other implementations abort on these events, so one of them makes a chain unreadable there.
@event_rule("CHAIN-12", DisablePushSource, DisablePollingSource, odf=None, binds_foreign=False)
def _sources_are_not_disabled(_state: ChainState, event: DisablePushSource | DisablePollingSource) -> Breach | None:
    return Breach("events that every implementation can read", type(event).__name__)
