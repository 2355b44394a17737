"""The program that asks a PostgreSQL server: run as a process of its own, of bounded memory.

A server may send anything: libpq keeps one row whole, however large it says it is. So it is asked here, where the end
of the process is an answer like any other. ``sources.postgres`` starts it with one request in JSON; rows go out as
lines of JSON, and at the end one line on standard error says how far they go, or what is wrong.

It imports nothing else of the node, so that it starts in a third of a second.

Source: clause ING-31 in ``spec/ingest.md``.
"""
