"""Values that a home keeps, and the errors of keeping them: what the store takes and gives."""
