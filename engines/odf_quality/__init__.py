"""Converters and validators of this distribution: a plug-in that engines load in their sandboxes.

Their contracts, and what calls them, are the core's: ``odf_engines.conversion`` and ``odf_engines.validation``.

Source: ``spec/plug-ins/quality.md``.
"""
