"""The store: the methods of all nouns on one database."""

from odf_node.adapters.sqlite_store.acceptances import AcceptanceMethods
from odf_node.adapters.sqlite_store.access import AccessMethods
from odf_node.adapters.sqlite_store.chains import ChainMethods
from odf_node.adapters.sqlite_store.commits import CommitMethods
from odf_node.adapters.sqlite_store.database import BUSY_TIMEOUT_S, Database
from odf_node.adapters.sqlite_store.datasets import DatasetMethods
from odf_node.adapters.sqlite_store.disputes import DisputeMethods
from odf_node.adapters.sqlite_store.evidence import EvidenceMethods
from odf_node.adapters.sqlite_store.gossip import GossipMethods
from odf_node.adapters.sqlite_store.ingests import IngestMethods
from odf_node.adapters.sqlite_store.key_events import KeyEventMethods
from odf_node.adapters.sqlite_store.object_names import ObjectNameMethods
from odf_node.adapters.sqlite_store.peers import PeerMethods
from odf_node.adapters.sqlite_store.replacements import ReplacementMethods
from odf_node.adapters.sqlite_store.serving import ServingMethods
from odf_node.home import Home


class SqliteMetadataStore(
    DatasetMethods,
    ChainMethods,
    CommitMethods,
    AcceptanceMethods,
    EvidenceMethods,
    DisputeMethods,
    IngestMethods,
    ObjectNameMethods,
    PeerMethods,
    AccessMethods,
    ReplacementMethods,
    ServingMethods,
    GossipMethods,
    KeyEventMethods,
):
    """``MetadataStore`` in ``home.database``. Making the value opens nothing."""

    def __init__(self, home: Home, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._path = home.database
        self._database = Database(home, busy_timeout_s=busy_timeout_s)

    def close(self) -> None:
        """See ``MetadataStore``."""
        self._database.close()
