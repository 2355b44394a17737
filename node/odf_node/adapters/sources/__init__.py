"""The source port on HTTP, local files, archives and commands.

``url`` and ``files`` fetch, ``archives`` and ``commands`` prepare, ``reader`` chooses between them.
"""

from odf_node.adapters.sources.limits import SourceLimits
from odf_node.adapters.sources.reader import LocalSourceReader

__all__ = ["LocalSourceReader", "SourceLimits"]
