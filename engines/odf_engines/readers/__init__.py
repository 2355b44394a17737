"""Readers of further formats: what takes a file apart into records, and a record into texts.

Source: ``spec/readers.md``.
"""
