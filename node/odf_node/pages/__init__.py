"""Web pages of a node: what commands show, for people with a browser; no page changes anything but a session.

Pages call the use cases that commands call, and show what these give to whoever looks, by the same grants as every
other route. ``add_pages`` is the way in; nothing else here is for other rooms.

Source: clauses PAGES-1 to PAGES-15 in ``spec/extensions/pages.md``.
"""

from typing import TYPE_CHECKING

from odf_node.pages.routes import add_pages
from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.pages import environment as environment
else:
    __getattr__ = late_modules(__name__)

__all__ = ["add_pages"]
