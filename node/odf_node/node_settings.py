"""The settings of a home, as everything that opens a node for a while keeps to them; the daemon has its own way."""

import os

from odf_node.composition import Node
from odf_node.configuration import Configuration, find_configuration_file, load_configuration
from odf_node.ports.sources import Commands


def keep_to_settings(node: Node) -> Configuration:
    """Read the settings of a node's home, and let the node keep to them (HOME-25, HOME-45, ING-17).

    Raises:
        ConfigurationError: They cannot be used.
    """
    settings = load_configuration(find_configuration_file(None, os.environ, node.home.path), os.environ)
    node.refused_bytes = settings.storage.refused_bytes
    node.commands = Commands(settings.ingest.commands)
    node.objects.rows.limit_bytes = settings.storage.rows_bytes
    return settings
