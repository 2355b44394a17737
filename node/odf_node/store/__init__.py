"""The store: everything that a home knows beside its files, in one SQLite database.

The nouns:

**Home**
    One folder that holds everything one node keeps. It is made by the first write, never by a read.
**Dataset record**
    What this node knows about one dataset beside its chain: local name, where it came from, how far it is trusted.
**Commit**
    The one way a chain grows: blocks, the moved head and all that was learned with them, in one transaction, after the
    objects they name are durable.
**Object**
    One immutable file (slice, checkpoint, quarantine, merge state) named by the SHA3-256 of its bytes.
**Writing lease**
    Held by a writer of objects that no committed row names yet; while one is held, nothing is swept.

Every method of the store is one transaction: seen whole or not at all, durable when it returns. Reading an empty or
absent home finds nothing and makes nothing; the first write makes the home. Bytes come back as they were given, neither
decoded nor judged. Every method may raise HomeVersionError and HomeCorruptError; a writing one HomeBusyError,
HomeFullError and HomeReadOnlyError too, having written nothing. Methods that name a dataset raise DatasetNotFoundError
when it is not here, except ``find_*`` and those about evidence of any dataset. Every method may be called from any
thread, and several processes may use one home at the same time; methods block.

``database`` opens the database and owns transactions and error mapping, ``schema`` its tables and migrations, ``rows``
the form of values in columns. Each group of tables has its class, all over one ``Database``; ``MetadataStore`` joins
them. The values that it takes and gives are in ``odf_node.records``.
"""

from odf_node.home_folder import HomeFolder
from odf_node.store.access import AuditTables, TokenTables
from odf_node.store.audit_log import SealedAuditTables
from odf_node.store.chains import ChainTables
from odf_node.store.commits import CommitTables
from odf_node.store.database import BUSY_TIMEOUT_S, Database
from odf_node.store.datasets import DatasetTables, DefinitionTables
from odf_node.store.documents import DocumentTables
from odf_node.store.evidence import EvidenceTables
from odf_node.store.ingests import IngestTables, StageTables
from odf_node.store.object_names import ObjectNameTables
from odf_node.store.peers import GossipTables, PeerTables, StoredTables, SubscriptionTables
from odf_node.store.quarantine import QuarantineStore


class MetadataStore(
    ChainTables,
    DatasetTables,
    DefinitionTables,
    CommitTables,
    DocumentTables,
    EvidenceTables,
    ObjectNameTables,
    IngestTables,
    QuarantineStore,
    StoredTables,
    PeerTables,
    TokenTables,
    AuditTables,
    SealedAuditTables,
    GossipTables,
    SubscriptionTables,
    StageTables,
):
    """All tables in ``home.database``. Making the value opens nothing."""

    def __init__(self, home: HomeFolder, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        super().__init__(Database(home, busy_timeout_s=busy_timeout_s))

    def read_change(self) -> object:
        """Return what is equal to the last answer as long as nobody, of whatever process, has committed since."""
        return self._database.read_change()

    def close(self) -> None:
        """Release files; the store is not used afterwards."""
        self._database.close()


__all__ = ["MetadataStore"]
