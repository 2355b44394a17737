"""The source port on HTTP, local files, archives, commands and container images.

``url``, ``files``, ``database`` and ``containers`` fetch, ``archives`` and ``commands`` prepare, ``reader`` chooses
between them.
"""

from odf_node.adapters.image_folder import ImageFolder
from odf_node.adapters.sources.limits import SourceLimits
from odf_node.adapters.sources.reader import LocalSourceReader
from odf_node.byte_rate import ByteRate
from odf_node.home_folder import HomeFolder
from odf_node.ports.sources import Commands

__all__ = ["LocalSourceReader", "SourceLimits", "open_sources"]


def open_sources(home: HomeFolder, rate: ByteRate, commands: Commands) -> LocalSourceReader:
    """Return the sources of a node, for which its own home is closed (ING-23)."""
    secrets = (home.keys, home.logins, home.database)
    limits = SourceLimits(closed=(home.path, *SourceLimits().closed), secrets=secrets)
    images = ImageFolder(home)
    return LocalSourceReader(limits=limits, rate=rate, commands=commands, images=images, messages=home.messages)
