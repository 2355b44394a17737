"""Readers of Avro, workbooks, XML and lines of fixed width, and how a first manifest reads such a file.

Source: READ-4 to READ-6 in ``spec/plug-ins/quality.md``.
"""
