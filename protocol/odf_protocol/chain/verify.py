"""Verification of blocks, one by one (``append``) or many: every block is hashed, decoded, and judged by every rule.

Source: ``spec/chain.md``, CHAIN-50 for many.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odf_protocol.block import Block, decode_block
from odf_protocol.block_traits import traits_of
from odf_protocol.chain.rule import ChainWarning, Rule, Strictness
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
        The new state, and what a foreign block breaks that would be rejected in our own.

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


def judge_further(rules: Sequence[Rule], state: ChainState, block: Block) -> tuple[ChainWarning, ...]:
    """Judge a block of others, which holds, by rules that this node alone has (PLUG-24).

    A rule that fails on a block rejects it: who wrote the block chose what it fails on.

    Args:
        rules: They see every block but the first.
        state: Before the block.
        block: The next one.

    Returns:
        What breaks a rule that does not bind.

    Raises:
        RejectedError: A rule that binds is broken.
    """
    warnings = []
    for rule in rules:
        if rule.event_types is not None and not isinstance(block.event, rule.event_types):
            continue
        try:
            breach = rule.find_breach(state, block)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise _rejection(str(rule), block, "a block that the rule can judge", text) from error
        if breach is None:
            continue
        if rule.binds_foreign:
            raise _rejection(str(rule), block, breach.expected, breach.found)
        warnings.append(ChainWarning(str(rule), block.sequence_number, breach.expected, breach.found))
    return tuple(warnings)


def _rejection(rule: str, block: Block, expected: object, found: object) -> RejectedError:
    return RejectedError(rule, sequence_number=block.sequence_number, expected=expected, found=found)


MAX_WARNINGS = 1_000  # guess: more say nothing new; all are counted


class VerifiedBlock(NamedTuple):
    """What is known of a block that was verified.

    Attributes:
        digest: SHA3-256 of it, 32 bytes.
        traits: What it is good for (``block_traits``).
        block: The block decoded.
    """

    digest: bytes
    traits: int
    block: Block


class ChainVerifier:
    """Verifies a chain in as many batches as the caller likes; memory does not grow with the chain.

    >>> verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    >>> verifier.verify([])
    []

    Attributes:
        warnings: What foreign blocks break that would be rejected in our own; the first thousand.
        warning_count: How many there were.
    """

    def __init__(self, state: ChainState | None, *, strictness: Strictness, further: Sequence[Rule] = ()) -> None:
        """Begin after ``state``; None begins a new chain. ``further``: rules that this node alone has."""
        self.warnings: list[ChainWarning] = []
        self.warning_count = 0
        self._state = state
        self._strictness = strictness
        self._further = further

    @property
    def state(self) -> ChainState | None:
        """The state after the last block accepted; None before the first."""
        return self._state

    def verify(self, raws: Iterable[bytes]) -> list[bytes]:
        """Verify the next blocks.

        A block's hash is not compared with anything here but the link in the block after it: the caller compares the
        last one, or all, with what it was told.

        Returns:
            SHA3-256 of each block, 32 bytes.

        Raises:
            MalformedError: Not a block.
            UnsupportedError: A block of a version or with an event that we do not know.
            RejectedError: A rule is broken. As after the other errors, ``state`` is that before the block.
        """
        return [self.take(raw).digest for raw in raws]

    def take(self, raw: bytes) -> VerifiedBlock:
        """Verify the next block, as ``verify`` does, and say what is known of it."""
        block = decode_block(raw, expected_hash=None)
        after, warnings = append(self._state, block, strictness=self._strictness)
        if self._further and self._state is not None:
            warnings = (*warnings, *judge_further(self._further, self._state, block))
        self._state = after
        self.warning_count += len(warnings)
        self.warnings.extend(warnings[: MAX_WARNINGS - len(self.warnings)])
        return VerifiedBlock(block.hash.digest, traits_of(block.event), block)
