"""Datasets as tables of a Spark session of the user's: read at the speed of Parquet, written by commits of the node.

``plug_in`` is what the core finds. ``session`` makes the tables of a session, ``names`` says what they are called, and
``following`` shows what others write. ``versions`` gives Spark files that this node has verified, ``current_rows``
those of datasets in which rows were taken back. ``source`` is the format ``odf``, which Spark runs in Python processes
of its own; ``reading`` and ``writing`` are its parts, and ``places`` finds its datasets.

Source: clauses SPARKTABLE-1 to SPARKTABLE-13 in ``spec/plug-ins/spark-tables.md``.
"""
