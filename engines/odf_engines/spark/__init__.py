"""Apache Spark as an engine: SQL over slices, in one sandboxed process that stays warm.

The host side is ``engine``, ``session``, ``outputs``, ``runtime``, ``class_data`` and ``digest``; everything else
here runs inside the sandbox, started by ``worker``.

Source: clauses ENGINE-1 to ENGINE-12 in ``spec/extensions/engine-contract.md``.
"""
