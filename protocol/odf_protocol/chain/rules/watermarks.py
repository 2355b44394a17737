"""Watermarks only rise.

Source: clause CHAIN-24 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import AddData, ExecuteTransform


# The reference engine lets the watermark of several inputs fall, or drops it, so such chains exist.
@event_rule("CHAIN-24", AddData, ExecuteTransform, odf=None, binds_foreign=False)
def _watermark_does_not_fall(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    highest = state.highest_watermark
    if highest is not None and (event.new_watermark is None or event.new_watermark < highest):
        return Breach(f"watermark {highest} or later", event.new_watermark)
    return None


RULES = (_watermark_does_not_fall,)
