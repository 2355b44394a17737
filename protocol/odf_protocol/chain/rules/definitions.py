"""How often a dataset may be defined anew.

Source: clause CHAIN-53 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import DEFINITIONS, ChainState
from odf_protocol.events import Event

MAX_DEFINITIONS = 10_000  # guess: one a day for 27 years


# Binds everybody: what is in force follows from all of them, and is asked for by every reader and every step over it.
@event_rule("CHAIN-53", *DEFINITIONS, odf=None)
def _definitions_are_few(state: ChainState, _event: Event) -> Breach | None:
    if state.definitions >= MAX_DEFINITIONS:
        return Breach(f"at most {MAX_DEFINITIONS} definitions over the life of the dataset", "one more")
    return None
