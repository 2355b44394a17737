"""Beginnings of files that say themselves what a record is, looked at in a sandbox: for a first manifest (ING-24).

``process`` starts ``looking`` and checks what it answers; there the plans of ``odf_read_plans`` find how a file
is to be read, and its reader reads it so.
"""
