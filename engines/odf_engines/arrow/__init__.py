"""The engine for sources that need none: Arrow in a sandbox, for plain records."""
