"""The ports about what a home knows, on one SQLite database.

``database`` opens it and owns transactions and error mapping, ``schema`` its tables and migrations, ``rows`` the form
of values in columns. Each port has its class, all over one ``Database``, and ``SqliteMetadataStore`` joins them.
"""

from odf_node.adapters.sqlite_store.access import SqliteAuditLog, SqliteTokens
from odf_node.adapters.sqlite_store.chains import SqliteChains
from odf_node.adapters.sqlite_store.commits import SqliteCommits
from odf_node.adapters.sqlite_store.database import BUSY_TIMEOUT_S, Database
from odf_node.adapters.sqlite_store.datasets import SqliteDatasets, SqliteDefinitions
from odf_node.adapters.sqlite_store.documents import SqliteDocuments
from odf_node.adapters.sqlite_store.evidence import SqliteEvidence
from odf_node.adapters.sqlite_store.ingests import SqliteIngests, SqliteStages
from odf_node.adapters.sqlite_store.object_names import SqliteObjectNames
from odf_node.adapters.sqlite_store.peers import SqliteGossipItems, SqlitePeers, SqliteRemotes, SqliteSubscriptions
from odf_node.adapters.sqlite_store.quarantine import SqliteQuarantine
from odf_node.home import Home


class SqliteMetadataStore(
    SqliteChains,
    SqliteDatasets,
    SqliteDefinitions,
    SqliteCommits,
    SqliteDocuments,
    SqliteEvidence,
    SqliteObjectNames,
    SqliteIngests,
    SqliteQuarantine,
    SqliteRemotes,
    SqlitePeers,
    SqliteTokens,
    SqliteAuditLog,
    SqliteGossipItems,
    SqliteSubscriptions,
    SqliteStages,
):
    """All ports in ``home.database``. Making the value opens nothing."""

    def __init__(self, home: Home, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        super().__init__(Database(home, busy_timeout_s=busy_timeout_s))

    def read_change(self) -> object:
        """Return what is equal to the last answer as long as nobody, of whatever process, has committed since."""
        return self._database.read_change()

    def close(self) -> None:
        """Release files; the store is not used afterwards."""
        self._database.close()


__all__ = ["SqliteMetadataStore"]
