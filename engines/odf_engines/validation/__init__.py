"""Validators: what is wrong with rows that could be read.

A *validator* is a plug-in that looks at converted rows and names *faults*; it changes nothing. A manifest *declares*
some of them, in order, each with its parameters; a declaration is *called* in the engine's sandbox, on every row.

What another package needs to bring a validator of its own stands in ``contract``; ``columns`` helps with nested values.

Source: clauses VALID-1 to VALID-8 in ``spec/validation.md``.
"""
