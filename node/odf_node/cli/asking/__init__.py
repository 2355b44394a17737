"""Asking questions in SQL: one, a script of several, or a shell on a terminal (QUERY-9, QUERY-10)."""
