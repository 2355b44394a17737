"""Web pages of a node: what commands show, for people with a browser; no page changes anything but a session.

Pages call the use cases that commands call, and show what these give to the viewer, by the same grants as every other
route. The daemon finds ``routes.ROUTES`` by its entry point in the group ``odf_node.routes``; the core imports nothing
of this package.

Source: clauses PAGES-1 to PAGES-15 in ``spec/plug-ins/pages.md``.
"""
