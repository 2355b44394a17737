"""One more block: judge it by every rule, then move the state over it.

Source: ``spec/chain.md``.
"""

from odf_protocol.block import Block
from odf_protocol.chain.rule import ChainWarning, Strictness
from odf_protocol.chain.rules import FIRST_BLOCK_RULES, RULES
from odf_protocol.chain.state import ChainState, advance, start
from odf_protocol.errors import RejectedError
from odf_protocol.events import Event
from odf_protocol.events.declaration import union_kind_of

_RULES_BY_EVENT = {
    event_type: tuple(rule for rule in RULES if rule.event_types is None or event_type in rule.event_types)
    for event_type in union_kind_of(Event).members
}


def append(
    state: ChainState | None, block: Block, *, strictness: Strictness
) -> tuple[ChainState, tuple[ChainWarning, ...]]:
    """Judge a block and return the state after it; the cost does not grow with the chain.

    Args:
        state: After the block before; None if there is none.
        block: Its bytes were hashed and decoded, nothing more.
        strictness: Whose block it is.

    Returns:
        The new state, and what a foreign block breaks that would be refused in our own.

    Raises:
        RejectedError: The first rule broken, with clause, block, expected and found.
    """
    if state is None:
        for first_rule in FIRST_BLOCK_RULES:
            if breach := first_rule.find_breach(None, block):
                raise _rejection(str(first_rule), block, breach.expected, breach.found)
        return start(block), ()
    warnings = []
    for rule in _RULES_BY_EVENT[type(block.event)]:
        breach = rule.find_breach(state, block)
        if breach is None:
            continue
        if rule.binds_foreign or strictness is Strictness.OWN:
            raise _rejection(str(rule), block, breach.expected, breach.found)
        warnings.append(ChainWarning(str(rule), block.sequence_number, breach.expected, breach.found))
    return advance(state, block), tuple(warnings)


def _rejection(rule: str, block: Block, expected: object, found: object) -> RejectedError:
    return RejectedError(rule, sequence_number=block.sequence_number, expected=expected, found=found)
