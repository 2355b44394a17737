"""Converters: what turns rows as they were read into rows of another schema, between reading and everything else.

Source: ``spec/conversion.md``.
"""
