"""Sinks for bad rows that this package brings.

Source: clause SINK-2 in ``spec/plug-ins/corrections.md``.
"""
