"""Datasets as Iceberg tables: the read side of Iceberg's REST catalogue over the slices of this node.

A plug-in: the core never imports it. What it serves follows from chains and slices alone; nothing is stored.

Source: ``spec/plug-ins/iceberg.md``.
"""
