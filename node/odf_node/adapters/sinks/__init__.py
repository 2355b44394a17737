"""Sinks for bad rows that this package brings.

Source: clause SINK-2 in ``spec/quarantine.md``.
"""
