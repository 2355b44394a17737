"""How a block hangs on the one before: by hash, by number and in time.

Source: clauses CHAIN-4 to CHAIN-9 of ``spec/chain.md``.
"""

from odf_protocol.block import Block
from odf_protocol.chain.rule import Breach, block_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import Seed


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


RULES = (
    _block_is_not_repeated,
    _chain_does_not_fork,
    _sequence_has_no_gap,
    _link_is_the_head,
    _time_does_not_run_back,
    _seed_comes_only_first,
)
