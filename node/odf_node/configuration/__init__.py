"""What an operator may set: the declaration, how it is read, and what can change while the node runs.

``declaration`` is the single source: the reader, the JSON schema in ``spec/schemas`` and the table in
``spec/daemon.md`` follow it, and tests hold them together.

Source: clauses DAEMON-1 to DAEMON-5 in ``spec/daemon.md``.
"""

from odf_node.configuration.declaration import (
    AccessSettings,
    Configuration,
    LimitSettings,
    Listen,
    Observe,
    Scrub,
    Shutdown,
    Storage,
    Tls,
)
from odf_node.configuration.reading import (
    CONFIGURATION_VARIABLE,
    ConfigurationError,
    find_configuration_file,
    load_configuration,
    parse_configuration,
)

__all__ = [
    "CONFIGURATION_VARIABLE",
    "AccessSettings",
    "Configuration",
    "ConfigurationError",
    "LimitSettings",
    "Listen",
    "Observe",
    "Scrub",
    "Shutdown",
    "Storage",
    "Tls",
    "find_configuration_file",
    "load_configuration",
    "parse_configuration",
]
