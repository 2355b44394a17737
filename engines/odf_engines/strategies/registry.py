"""The merge strategies that there are: ODF's by their events, those of other packages by name and version.

A package brings a strategy by an entry point of the group ``odf_merge_strategies``, which leads to a class derived from
the strategy of ODF beside which manifests declare it: columns, keys and state are that one's, how rows meet is its own.

Source: spec/ingest.md ING-8 to ING-11 and ING-56.
"""

import importlib
from typing import Final

from odf_engines.errors import EngineError
from odf_engines.ingest_parts import StrategyCall
from odf_engines.plug_in_names import PlugInNames
from odf_engines.strategies.append import Append
from odf_engines.strategies.changelog_stream import ChangelogStream
from odf_engines.strategies.contract import Strategy
from odf_engines.strategies.ledger import Ledger
from odf_engines.strategies.snapshot import Snapshot
from odf_engines.strategies.upsert_stream import UpsertStream
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import MergeStrategy

ADDED_STRATEGIES: Final = PlugInNames("odf_merge_strategies", {})

_STRATEGIES: Final = {each.event: each for each in (Append(), ChangelogStream(), Ledger(), Snapshot(), UpsertStream())}

_OF_EVENT: Final = ("event", "keeps", "takes_operation", "needs_operation", "max_operation", "takes_null_operation")
"""What the rest of an ingest reads of the event's strategy, so that a derived class may not say something else."""


class BrokenStrategyError(EngineError):
    """A merge strategy of another package cannot be used."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"merge strategy {name} cannot be used: {reason}")


def strategy_of(merge: MergeStrategy, added: StrategyCall | None = None) -> Strategy:
    """Return the strategy of an event, or the one of another package that the dataset declares beside it.

    Raises:
        UnsupportedError: There is none here, or it is there in another version.
        BrokenStrategyError: It cannot be used.
    """
    if added is not None:
        return load_strategy(added)
    found = _STRATEGIES.get(type(merge))
    if found is None:
        raise UnsupportedError("merge strategy", found=type(merge).__name__)
    return found


def load_strategy(added: StrategyCall) -> Strategy:
    """Load a strategy of another package; for the errors see ``strategy_of``."""
    try:
        kind = getattr(importlib.import_module(added.module), added.attribute)
    except Exception as error:
        raise BrokenStrategyError(added.name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Strategy)):
        raise BrokenStrategyError(added.name, f"{added.module}:{added.attribute} is no merge strategy")
    event = getattr(kind, "event", None)
    base = None if event is None else _STRATEGIES.get(event)
    if base is None or not kind.version:
        raise BrokenStrategyError(added.name, f"{added.module}:{added.attribute} has no event of ODF, or no version")
    for name in _OF_EVENT:
        if getattr(kind, name) != getattr(base, name):
            raise BrokenStrategyError(added.name, f"its {name} is another one than that of {type(base).__name__}")
    if kind.version != added.version:
        raise UnsupportedError(
            f"version of merge strategy {added.name}", found=added.version, supported=f"{kind.version}, as is installed"
        )
    strategy: Strategy = kind()
    return strategy
