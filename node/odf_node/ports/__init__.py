"""What the node's use cases need from the outside, as protocols with their contracts, and the values that cross them.

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
    Held by whoever makes objects that no committed row names yet; while anybody holds one, nothing is swept.

Each port is what one capability needs of the home's database or of the outside; use cases take those that they use.
Every method about what a home knows is one transaction: seen whole or not at all, durable when it returns. Reading an
empty or absent home finds nothing and makes nothing; the first write makes the home. Bytes come back as they were
given, neither decoded nor judged. Every such method may raise HomeVersionError and HomeCorruptError; a writing one
HomeBusyError, HomeFullError and HomeReadOnlyError too, having written nothing. Methods that name a dataset raise
DatasetNotFoundError when it is not here, except ``find_*`` and those about evidence of any dataset.

Every method of every port may be called from any thread, and several processes may use one home at the same time.
Methods block: asynchronous callers wrap them in ``asyncio.to_thread``. Adapters raise only errors of the tree in
``odf_protocol.errors``; misuse by our own code raises ``ValueError``.
"""

from odf_node.ports.access import AccessToken
from odf_node.ports.audit import AuditEntry, Outcome
from odf_node.ports.clock import Clock
from odf_node.ports.commits import Acceptance, Commit, NewBlock, NewDataset
from odf_node.ports.datasets import (
    BlockRole,
    DatasetRecord,
    Origin,
    Remote,
    RemoteDirection,
    ReplacedHistory,
    Repository,
    SignedHead,
    StoredBlock,
)
from odf_node.ports.errors import (
    BlockNotFoundError,
    DatasetNotFoundError,
    HeadMovedError,
    HomeBusyError,
    HomeCorruptError,
    HomeFullError,
    HomeReadOnlyError,
    HomeVersionError,
    KeyLogMovedError,
    KeyNotFoundError,
    NameTakenError,
    ObjectCorruptError,
    ObjectMismatchError,
    ObjectNotFoundError,
    PeerKeyChangedError,
    SigningKeyLostError,
    UnsafeKeyFileError,
)
from odf_node.ports.evidence import (
    Attestation,
    DocumentKind,
    EvidenceDocument,
    KeyLogChange,
    ReplayRecord,
    SeenHead,
    Verified,
)
from odf_node.ports.keys import KeyStore, PrivateKey, SignedMarks
from odf_node.ports.objects import ObjectStore, ObjectUpkeep, StagedObject, StoredObjects, SweepReport
from odf_node.ports.peers import Peer
from odf_node.ports.quarantine import QuarantineFile
from odf_node.ports.sources import (
    Commands,
    Fetched,
    SourceNotFoundError,
    SourceReader,
    SourceRefusedError,
    SourceTooLargeError,
    SourceUnavailableError,
    UpToDate,
)
from odf_protocol.head import Head

__all__ = [
    "Acceptance",
    "AccessToken",
    "Attestation",
    "AuditEntry",
    "BlockNotFoundError",
    "BlockRole",
    "Clock",
    "Commands",
    "Commit",
    "DatasetNotFoundError",
    "DatasetRecord",
    "DocumentKind",
    "EvidenceDocument",
    "Fetched",
    "Head",
    "HeadMovedError",
    "HomeBusyError",
    "HomeCorruptError",
    "HomeFullError",
    "HomeReadOnlyError",
    "HomeVersionError",
    "KeyLogChange",
    "KeyLogMovedError",
    "KeyNotFoundError",
    "KeyStore",
    "NameTakenError",
    "NewBlock",
    "NewDataset",
    "ObjectCorruptError",
    "ObjectMismatchError",
    "ObjectNotFoundError",
    "ObjectStore",
    "ObjectUpkeep",
    "Origin",
    "Outcome",
    "Peer",
    "PeerKeyChangedError",
    "PrivateKey",
    "QuarantineFile",
    "Remote",
    "RemoteDirection",
    "ReplacedHistory",
    "ReplayRecord",
    "Repository",
    "SeenHead",
    "SignedHead",
    "SignedMarks",
    "SigningKeyLostError",
    "SourceNotFoundError",
    "SourceReader",
    "SourceRefusedError",
    "SourceTooLargeError",
    "SourceUnavailableError",
    "StagedObject",
    "StoredBlock",
    "StoredObjects",
    "SweepReport",
    "UnsafeKeyFileError",
    "UpToDate",
    "Verified",
]
