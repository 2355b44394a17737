"""ODF's Smart Transfer Protocol, of both sides: WebSockets by which servers of the existing network pull and push.

The node finds ``protocol.PROTOCOL`` and ``routes.ROUTES`` by their entry points. What is decided without I/O is in
``odf_smart_protocol``.

Source: clauses SMART-1 to SMART-13 in ``spec/plug-ins/smart-transfer.md``.
"""
