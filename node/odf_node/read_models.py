"""What commands and pages show of a node, each as a use case that gives dataclasses; part of the composition."""

from typing import TYPE_CHECKING

from odf_node.ports.objects import ObjectUpkeep
from odf_node.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from odf_node.acceptance.refusals import Refusals
    from odf_node.derive.chain_log import ChainLog
    from odf_node.ports.clock import Clock
    from odf_node.ports.engines import EngineShelf
    from odf_node.schedules.overview import ScheduleOverview
    from odf_node.trust.grounds import GroundsReader
    from odf_node.upkeep.listing import Listing
    from odf_node.upkeep.status import NodeStatus


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
    def listing(self) -> "Listing":
        """Behind ``list``."""
        from odf_node.upkeep.listing import Listing

        store = self._store
        return Listing(store, self._objects)

    @property
    def chain_log(self) -> "ChainLog":
        """Behind ``log``."""
        from odf_node.derive.chain_log import ChainLog

        return ChainLog(self._store, self._objects)

    @property
    def grounds(self) -> "GroundsReader":
        """Behind ``inspect trust``."""
        from odf_node.trust.grounds import GroundsReader

        store = self._store
        return GroundsReader(store, self._objects, self._open_shelf())

    @property
    def schedule_overview(self) -> "ScheduleOverview":
        """Behind ``schedule``."""
        from odf_node.schedules.notes import read_notes
        from odf_node.schedules.overview import ScheduleOverview

        return ScheduleOverview(self._store, read_notes(self._cache))

    def make_status(self, refusals: "Refusals", clock: "Clock") -> "NodeStatus":
        """Behind ``status``."""
        from odf_node.derive.engine_usage import EngineUsage
        from odf_node.upkeep.status import NodeStatus

        store, usage = self._store, EngineUsage(self._store, self._open_shelf())
        parts = store, self._objects, refusals, clock, usage
        return NodeStatus(*parts, self.schedule_overview, self._cache)
