"""Tables of Python's front that can be written, go back to earlier versions, and state what changed between two.

A plug-in of the group ``odf_node.tables``. A write is one batch of rows that the core merges and commits as it does any
ingest; versions are blocks of the chain, changes are its operations. Nothing is kept beside the chain but how far
consumers are.

Source: ``spec/plug-ins/tables.md``.
"""
