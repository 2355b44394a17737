"""The source port on web servers and local files, and on the kinds that plug-ins bring.

``url`` and ``files`` fetch, ``archives`` prepares, ``kinds`` finds the kind of a step, ``reader`` asks it.
"""

from odf_node.byte_rate import ByteRate
from odf_node.home_folder import HomeFolder
from odf_node.ports.sources import Commands
from odf_node.sources.limits import SourceLimits
from odf_node.sources.reader import LocalSourceReader

__all__ = ["LocalSourceReader", "SourceLimits", "limit_sources", "open_sources"]


def open_sources(home: HomeFolder, rate: ByteRate, commands: Commands) -> LocalSourceReader:
    """Return the sources of a node, for which its own home is closed (ING-23)."""
    return LocalSourceReader(limits=limit_sources(home), rate=rate, commands=commands, home=home)


def limit_sources(home: HomeFolder) -> SourceLimits:
    """Return the limits of sources by which a home is closed to them (ING-23)."""
    secrets = (home.keys, home.logins, home.database)
    return SourceLimits(closed=(home.path, *SourceLimits().closed), secrets=secrets)
