"""Sources of root datasets.

Source: clauses CHAIN-32 to CHAIN-36 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState, push_source_fingerprint
from odf_protocol.events import AddPushSource, FetchStepEthereumLogs, SetPollingSource

MAX_PUSH_SOURCES = 1_000  # guess: bounds the state; one per writer is plenty


@event_rule("CHAIN-32", AddPushSource, SetPollingSource, odf="InvalidEvent: ddlSchema and schema")
def _read_step_has_one_schema(_state: ChainState, event: AddPushSource | SetPollingSource) -> Breach | None:
    if event.read.ddl_schema is not None and event.read.schema is not None:
        return Breach("ddl_schema or schema", "both")
    return None


@event_rule("CHAIN-33", AddPushSource, SetPollingSource, odf="InvalidEvent: push and polling sources")
def _dataset_is_pushed_or_polled(state: ChainState, event: AddPushSource | SetPollingSource) -> Breach | None:
    match event:
        case AddPushSource() if state.has_polling_source:
            return Breach("no push source beside the polling source", f"push source {event.source_name}")
        case SetPollingSource() if state.push_sources:
            return Breach(f"no polling source beside push source {state.push_sources[0].name}", "SetPollingSource")
    return None


@event_rule("CHAIN-34", AddPushSource, odf="NoOpEvent")
def _push_source_changes_something(state: ChainState, event: AddPushSource) -> Breach | None:
    known = state.find_push_source(event.source_name)
    if known is not None and known.fingerprint == push_source_fingerprint(event):
        return Breach(f"another definition of {event.source_name}", "the same")
    return None


@event_rule("CHAIN-35", SetPollingSource, odf="InvalidEvent: chain_id or node_url")
def _ethereum_source_names_its_chain(_state: ChainState, event: SetPollingSource) -> Breach | None:
    match event.fetch:
        case FetchStepEthereumLogs(chain_id=None, node_url=None):
            return Breach("chain_id or node_url", "neither")
    return None


@event_rule("CHAIN-36", AddPushSource, odf=None)
def _push_sources_are_few(state: ChainState, event: AddPushSource) -> Breach | None:
    if len(state.push_sources) >= MAX_PUSH_SOURCES and state.find_push_source(event.source_name) is None:
        return Breach(f"at most {MAX_PUSH_SOURCES} push sources", "one more")
    return None
