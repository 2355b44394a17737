"""The program that asks a bucket: run as a process of its own, of bounded memory.

A server may list objects without end, and the client keeps each list whole. ``sources.bucket`` starts it; see
``sources.reader_process``.

Source: clause ING-45 in ``spec/ingest.md``.
"""
