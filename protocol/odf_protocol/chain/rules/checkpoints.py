"""An engine's state goes on where it stopped.

Source: clause CHAIN-23 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import AddData, ExecuteTransform


@event_rule("CHAIN-23", AddData, ExecuteTransform, odf="InvalidEvent: input checkpoint")
def _checkpoint_is_the_last(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.prev_checkpoint != state.checkpoint:
        return Breach(f"prev_checkpoint {state.checkpoint}", event.prev_checkpoint)
    return None


RULES = (_checkpoint_is_the_last,)
