"""A short, signed, re-executable description of every version of a dataset, which travels before its rows.

Source: clauses FP-1 to FP-15 in ``spec/plug-ins/fingerprints.md``.
"""
