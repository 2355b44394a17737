"""Sources as rows: reading, plain conversion, appending, and the files that an ingest leaves. Knows no engine."""
