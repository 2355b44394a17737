"""Apache Spark as an engine: SQL over slices, in one sandboxed process that stays warm.

Outside the sandbox run ``engine``, ``runtime`` and ``class_data``, with what the host has for
every engine; everything else here runs inside the sandbox, started by ``worker``.

A plug-in: the core finds it by the entry point group ``odf_engines``, and imports none of it.

Source: clauses SPARK-1 and SPARK-2 in ``spec/plug-ins/spark.md``; ENGINE-1 to ENGINE-12 in
``spec/extensions/engine-contract.md``.
"""
