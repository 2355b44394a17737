"""What commands and pages show of a node, each as a use case that gives dataclasses; part of the composition."""

from typing import TYPE_CHECKING

from odf_node.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable

    from odf_node.acceptance.refusals import Rejections
    from odf_node.derive.chain_log import ChainLog
    from odf_node.ports.engines import EngineFiles
    from odf_node.trust.grounds import GroundsReader
    from odf_node.upkeep.listing import Listing
    from odf_node.upkeep.status import NodeStatus


class ReadModels:
    """Makes them over one home; each is loaded when it is asked for."""

    def __init__(self, home: Home, open_engine_files: "Callable[[], EngineFiles]") -> None:
        self._home = home
        self._open_engine_files = open_engine_files

    @property
    def listing(self) -> "Listing":
        """Behind ``list``."""
        from odf_node.upkeep.listing import Listing

        return Listing(self._home)

    @property
    def chain_log(self) -> "ChainLog":
        """Behind ``log``."""
        from odf_node.derive.chain_log import ChainLog

        return ChainLog(self._home)

    @property
    def grounds(self) -> "GroundsReader":
        """Behind ``inspect trust``."""
        from odf_node.trust.grounds import GroundsReader

        return GroundsReader(self._home, self._open_engine_files())

    def make_status(self, refusals: "Rejections") -> "NodeStatus":
        """Behind ``status``."""
        from odf_node.derive.engine_usage import EngineUsage
        from odf_node.upkeep.status import NodeStatus

        usage = EngineUsage(self._home.store, self._open_engine_files())
        return NodeStatus(self._home, refusals, usage)
