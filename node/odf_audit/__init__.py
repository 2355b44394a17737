"""Who read and wrote which version of which dataset, and with what code: recorded by itself.

A plug-in. It hears of every read and write of a home (``odf_node.access``), keeps a record of each in the node's audit
log, hash-chained and signed by the node's key, and answers questions about it (``odf-node audit``).

Source: clauses AUDIT-1 to AUDIT-20 in ``spec/plug-ins/audit.md``.
"""
