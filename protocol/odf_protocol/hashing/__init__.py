"""Hashes over rows: what two tables must share to count as equal, whatever the Parquet writer did.

``arrow0``
    ODF's own logical hash, needed to agree with other nodes; ambiguous in known ways.
``v1``
    Our Merkle hash beside it: injective, and finds where two tables differ.
"""
