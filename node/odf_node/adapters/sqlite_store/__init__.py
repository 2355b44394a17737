"""The ports about what a home knows, on one SQLite database.

``database`` opens it and owns transactions and error mapping, ``schema`` its tables and migrations, ``rows`` the form
of values in columns. Each port has its module and class, all over one ``Database``; ``store`` joins them.
"""

from odf_node.adapters.sqlite_store.store import SqliteMetadataStore

__all__ = ["SqliteMetadataStore"]
