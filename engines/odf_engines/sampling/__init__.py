"""Beginnings of files that say themselves what a record is, looked at in a sandbox: for a first manifest (ING-24).

``process`` starts ``looking`` and checks what it answers; there ``workbooks``, ``elements`` and ``columnar`` find how a
file is to be read, and the readers of READ-4 read it so.
"""
