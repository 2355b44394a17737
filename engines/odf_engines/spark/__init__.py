"""Apache Spark as an engine: SQL over slices, in one sandboxed process that stays warm.

Outside the sandbox run ``engine``, ``runtime`` and ``class_data``, with what the host has for
every engine; everything else here runs inside the sandbox, started by ``worker``.

Source: clauses ENGINE-1 to ENGINE-12 in ``spec/extensions/engine-contract.md``.
"""
