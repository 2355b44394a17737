"""What a dataset rests on, in the words in which it is shown everywhere.

Source: clauses ACCEPT-5 in ``spec/extensions/acceptance.md`` and PLAN-10 in ``spec/transform.md``.
"""

from odf_node.ports import Acceptance, DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_protocol.coverage import decode_progress
from odf_protocol.enums import DatasetKind


def find_partial(chains: ChainStore, record: DatasetRecord) -> str:
    """Say what makes a dataset less than its declared query over the whole input; empty where nothing does."""
    if record.kind is DatasetKind.ROOT:
        return ""  # it declares no query
    _head, state = chains.get_chain_state(record.id)
    return decode_progress(state).partial


def describe_acceptance(acceptance: Acceptance) -> dict[str, object]:
    """Give an acceptance as plain values; what it says in ``partial`` is said in ``trust`` too."""
    grounds = acceptance.grounds
    trust = acceptance.trust.in_words(grounds.partial)
    return {"at": str(acceptance.accepted_at), "trust": trust, **grounds.to_json()}
