"""The ports filled with real things: SQLite, folders, key files, HTTP. Adapters see ports, never use cases."""
