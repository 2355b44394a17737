"""Rows of slices.

Read, checked against their block, hashed and compared: asked for here, done in a sandbox (``odf_engines.reading``).
"""
