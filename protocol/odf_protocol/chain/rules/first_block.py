"""How a chain begins.

Source: clauses CHAIN-1 to CHAIN-3 of ``spec/chain.md``.
"""

from odf_protocol.block import Block
from odf_protocol.chain.rule import Breach, first_block_rule
from odf_protocol.events import Seed


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


RULES = (_first_block_is_a_seed, _first_block_has_no_link, _first_block_has_number_0)
