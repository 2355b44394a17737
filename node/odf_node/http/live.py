"""What routes read anew at each request, because it may change while the node runs, and what they count."""

from typing import Final

from aiohttp import web

from odf_node.configuration import Configuration
from odf_node.metrics import Metrics


class Live:
    """The configuration that holds now, and the node's figures; used on the event loop."""

    def __init__(self, configuration: Configuration | None = None, metrics: Metrics | None = None) -> None:
        self.configuration = configuration or Configuration()
        self.metrics = metrics or Metrics()
        self.damaged_objects = 0
        """As the last scrub found."""


LIVE: Final = web.AppKey("live", Live)
