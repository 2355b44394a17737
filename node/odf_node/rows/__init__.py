"""Rows of slices.

Read, checked against their block, hashed and compared, where the file comes from untrusted input in a limited
process.
"""
