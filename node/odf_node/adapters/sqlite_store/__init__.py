"""The metadata port on one SQLite database.

``database`` opens it and owns transactions and error mapping, ``schema`` its tables and migrations, ``rows`` the form
of values in columns; every other module implements the methods of one noun, and ``store`` joins them.
"""

from odf_node.adapters.sqlite_store.store import SqliteMetadataStore

__all__ = ["SqliteMetadataStore"]
