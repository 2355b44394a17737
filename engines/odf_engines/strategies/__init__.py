"""Merge strategies: one class each, in a module of its own, which says what it keeps, reads and makes of rows."""
