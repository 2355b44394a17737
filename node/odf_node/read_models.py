"""What commands and pages show of a node, each as a use case that gives dataclasses; part of the composition."""

from typing import TYPE_CHECKING

from odf_node import derive, schedules, trust, upkeep
from odf_node.ports.objects import ObjectUpkeep
from odf_node.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from odf_node.acceptance.refusals import Refusals
    from odf_node.ports.clock import Clock
    from odf_node.ports.engines import EngineShelf


class ReadModels:
    """Makes them over one home; each is loaded when it is asked for."""

    def __init__(
        self, store: MetadataStore, objects: ObjectUpkeep, open_shelf: "Callable[[], EngineShelf]", cache: "Path"
    ) -> None:
        self._store = store
        self._cache = cache
        self._objects = objects
        self._open_shelf = open_shelf

    @property
    def listing(self) -> "upkeep.listing.Listing":
        """Behind ``list``."""
        store = self._store
        return upkeep.listing.Listing(store, self._objects)

    @property
    def chain_log(self) -> "derive.chain_log.ChainLog":
        """Behind ``log``."""
        return derive.chain_log.ChainLog(self._store, self._objects)

    @property
    def grounds(self) -> "trust.grounds.GroundsReader":
        """Behind ``inspect trust``."""
        store = self._store
        return trust.grounds.GroundsReader(store, self._objects, self._open_shelf())

    @property
    def schedule_overview(self) -> "schedules.overview.ScheduleOverview":
        """Behind ``schedule``."""
        return schedules.overview.ScheduleOverview(self._store, schedules.notes.read_notes(self._cache))

    def make_status(self, refusals: "Refusals", clock: "Clock") -> "upkeep.status.NodeStatus":
        """Behind ``status``."""
        store, usage = self._store, derive.engine_usage.EngineUsage(self._store, self._open_shelf())
        parts = store, self._objects, refusals, clock, usage
        return upkeep.status.NodeStatus(*parts, self.schedule_overview, self._cache)
