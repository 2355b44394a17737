"""The merge strategies that there are, by their events.

Source: spec/ingest.md ING-8 to ING-11.
"""

from typing import Final

from odf_engines.strategies.append import Append
from odf_engines.strategies.changelog_stream import ChangelogStream
from odf_engines.strategies.contract import Strategy
from odf_engines.strategies.ledger import Ledger
from odf_engines.strategies.snapshot import Snapshot
from odf_engines.strategies.upsert_stream import UpsertStream
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import MergeStrategy

_STRATEGIES: Final = {each.event: each for each in (Append(), ChangelogStream(), Ledger(), Snapshot(), UpsertStream())}


def strategy_of(merge: MergeStrategy) -> Strategy:
    """Return the strategy of an event.

    Raises:
        UnsupportedError: There is none here.
    """
    found = _STRATEGIES.get(type(merge))
    if found is None:
        raise UnsupportedError("merge strategy", found=type(merge).__name__)
    return found
