"""Engines: run declared transforms in a sandbox, so that any node can execute them again."""
