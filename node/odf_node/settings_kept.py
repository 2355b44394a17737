"""What of a node its settings decide; part of the composition."""

import os
from functools import cached_property
from typing import TYPE_CHECKING

from odf_node.adapters.observing import get_observer
from odf_node.configuration import find_configuration_file, load_configuration
from odf_node.home import Home

if TYPE_CHECKING:
    from odf_node.configuration.declaration import Configuration, Engines
    from odf_node.ports.observing import Observer


class KeepsToSettings:
    """Reads the settings of a home when something of them is first asked for; the daemon sets what it has read."""

    def __init__(self, home: Home) -> None:
        self.home = home

    @cached_property
    def engine_roles(self) -> "Engines":
        """Which engine does what no manifest says."""
        return self.settings.engines

    @cached_property
    def observer(self) -> "Observer":
        """Who hears what runs (OBSERVE-1)."""
        return get_observer(self.settings, os.environ)

    def flush_observer(self) -> None:
        """Wait shortly until what was heard is told."""
        if "observer" in self.__dict__:
            self.observer.flush()

    @cached_property
    def settings(self) -> "Configuration":
        """What was set, where nobody says what holds: in the home's own file and the environment."""
        path = find_configuration_file(None, os.environ, self.home.folder.path)
        return load_configuration(path, os.environ)
