"""What a rule is: a numbered clause, whom it binds, and a function that finds a breach.

Source: ``spec/chain.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from odf_protocol.block import Block
from odf_protocol.chain.state import ChainState
from odf_protocol.errors import RejectedError


class Strictness(Enum):
    """Whose block is judged."""

    OWN = auto()
    """Ours, before it is signed: every rule binds."""

    FOREIGN = auto()
    """Somebody else's: rules that only careful writers keep become warnings."""


@dataclass(frozen=True, slots=True)
class Breach:
    """How a block breaks a rule: what the rule asks for and what is there."""

    expected: object
    found: object


@dataclass(frozen=True, slots=True)
class ChainWarning:
    """A foreign block breaks a rule that binds our own blocks only."""

    rule: str
    sequence_number: int
    expected: object
    found: object

    def __str__(self) -> str:
        number, expected, found = self.sequence_number, self.expected, self.found
        return str(RejectedError(self.rule, sequence_number=number, expected=expected, found=found))


@dataclass(frozen=True, slots=True)
class Rule:
    """One clause of ``spec/chain.md``.

    Attributes:
        clause: Its number, such as ``CHAIN-4``.
        name: What it says, such as ``sequence-has-no-gap``.
        odf_name: How the reference implementation calls the breach; None where the rule is ours.
        binds_foreign: Whether a foreign block that breaks it is rejected, as opposed to reported.
        event_types: The events it judges; None means every block.
        find_breach: The rule itself; pure and of constant cost, whatever the length of the chain. The state is
            that before the block, None for rules of the first block.
    """

    clause: str
    name: str
    odf_name: str | None
    binds_foreign: bool
    event_types: tuple[type[Any], ...] | None
    find_breach: Callable[[Any, Block], Breach | None]

    def __str__(self) -> str:
        return f"{self.clause} {self.name}"


_BlockCheck = Callable[[ChainState, Block], Breach | None]
_EventCheck = Callable[[ChainState, Any], Breach | None]


def first_block_rule(clause: str, *, odf: str | None) -> Callable[[Callable[[Block], Breach | None]], Rule]:
    """Make a rule for the first block out of a function of the block."""

    def make(check: Callable[[Block], Breach | None]) -> Rule:
        def find_breach(_no_state: None, block: Block) -> Breach | None:
            return check(block)

        return Rule(clause, _name_of(check), odf, True, None, find_breach)

    return make


def block_rule(clause: str, *, odf: str | None) -> Callable[[_BlockCheck], Rule]:
    """Make a rule for every block but the first out of a function of state and block."""

    def make(check: _BlockCheck) -> Rule:
        return Rule(clause, _name_of(check), odf, True, None, check)

    return make


def event_rule(
    clause: str, *event_types: type[Any], odf: str | None, binds_foreign: bool = True
) -> Callable[[_EventCheck], Rule]:
    """Make a rule for some events out of a function of state and event.

    Args:
        clause: Its number.
        event_types: Events it judges; the function gets no other.
        odf: What the reference implementation calls a breach, None where it does not look.
        binds_foreign: False where existing chains may break it and nothing depends on it.
    """

    def make(check: _EventCheck) -> Rule:
        def find_breach(state: ChainState, block: Block) -> Breach | None:
            return check(state, block.event)

        return Rule(clause, _name_of(check), odf, binds_foreign, event_types, find_breach)

    return make


def _name_of(check: Callable[..., Breach | None]) -> str:
    return check.__name__.strip("_").replace("_", "-")
