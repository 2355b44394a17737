"""Records of a source on their way to rows: values as texts, what carries them, and how a text becomes a value.

Readers, converters and validators build on it, and know nothing of the ingest that runs them.

Source: clauses ING-1, ING-4, ING-5 and ING-16 in ``spec/ingest.md``.
"""
