"""What a block may say about files.

Source: clauses CHAIN-20 to CHAIN-22 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import ARROW0_SHA3_256, SHA3_256


@event_rule("CHAIN-20", AddData, ExecuteTransform, odf="InvalidEvent: SetDataSchema must be present")
def _schema_precedes_data(state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.new_data and not state.has_schema:
        return Breach("SetDataSchema before the first rows", "none")
    return None


# Binds everybody: a file whose hash we cannot compute could be anything.
@event_rule("CHAIN-21", AddData, ExecuteTransform, odf=None)
def _files_are_named_by_sha3_256(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    for file in (event.new_data, event.new_checkpoint):
        if file and file.physical_hash.code != SHA3_256:
            return Breach("a physical hash of kind sha3-256", file.physical_hash)
    return None


# Foreign data with another logical hash can be kept, it only cannot be compared by re-execution.
@event_rule("CHAIN-22", AddData, ExecuteTransform, odf=None, binds_foreign=False)
def _rows_are_named_by_arrow0(_state: ChainState, event: AddData | ExecuteTransform) -> Breach | None:
    if event.new_data and event.new_data.logical_hash.code != ARROW0_SHA3_256:
        return Breach("a logical hash of kind arrow0-sha3-256", event.new_data.logical_hash)
    return None


RULES = (_schema_precedes_data, _files_are_named_by_sha3_256, _rows_are_named_by_arrow0)
