"""Which events a root and a derivative dataset may have, and how sources end.

Source: clauses CHAIN-10 to CHAIN-12 of ``spec/chain.md``.
"""

from typing import Any

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    SetPollingSource,
    SetTransform,
)

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


RULES = (_event_suits_the_kind, _disabled_source_is_in_force, _sources_are_not_disabled)
