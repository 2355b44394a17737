"""odf-node: the I/O shell around the Open Data Fabric protocol and its engines.

``odf_node.open(home_or_url)`` is Python's way in; see ``odf_node.front``.
"""

from typing import TYPE_CHECKING

import odf_node
from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from pathlib import Path

    from odf_node import audits as audits
    from odf_node import byte_rate as byte_rate
    from odf_node import composition as composition
    from odf_node import configuration as configuration
    from odf_node import front as front
    from odf_node import remote_tables as remote_tables
    from odf_node import sources as sources
    from odf_node import table_names as table_names
else:
    __getattr__ = late_modules(__name__)

__version__ = "0.1.0"


def open(home_or_url: "str | Path | None" = None) -> "front.OpenNode":  # noqa: A001 - as gzip.open, and read with its module
    """Open a node: its home's folder (None: the default one), or another node's address; see ``front.open_front``."""
    return odf_node.front.open_front(home_or_url)
