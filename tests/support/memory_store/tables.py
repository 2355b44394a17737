"""What the ports in memory share: everything that is kept, and the lock that makes a change whole."""

from dataclasses import dataclass, field
from threading import RLock

from odf_engines.stage_figures import StageFigures
from odf_node.ports.access import AccessToken
from odf_node.ports.audit import AuditEntry
from odf_node.ports.commits import Acceptance, FetchedPlace, NewBlock
from odf_node.ports.datasets import (
    DatasetRecord,
    Remote,
    ReplacedHistory,
    Repository,
    SignedHead,
    StoredBlock,
    Subscription,
)
from odf_node.ports.errors import BlockNotFoundError, DatasetNotFoundError
from odf_node.ports.evidence import Attestation, EvidenceDocument, SeenHead, Verified
from odf_node.ports.gossip import KeptItem
from odf_node.ports.ingests import KeptAnswer, StageTotal
from odf_node.ports.peers import Peer
from odf_node.ports.quarantine import QuarantineFile, RowNote
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash


@dataclass(slots=True)
class NamedObject:
    """How an object stands to a dataset whose blocks name it."""

    absent: bool
    brought: bool


@dataclass(slots=True)
class KeptDataset:
    """One dataset with all that goes with it when it is deleted."""

    record: DatasetRecord
    chain_state: bytes
    asked_name: str | None = None
    blocks: list[NewBlock] = field(default_factory=list)
    objects: dict[Multihash, NamedObject] = field(default_factory=dict)
    replay_records: dict[int, bytes] = field(default_factory=dict)
    signed_heads: list[tuple[int, SignedHead]] = field(default_factory=list)
    acceptances: list[Acceptance] = field(default_factory=list)
    quarantine: list[QuarantineFile] = field(default_factory=list)
    row_notes: dict[int, dict[int, RowNote]] = field(default_factory=dict)
    batch_sizes: dict[str, int] = field(default_factory=dict)
    stages: dict[int, tuple[StageFigures, ...]] = field(default_factory=dict)
    fetched_place: FetchedPlace | None = None
    answers: dict[tuple[str, str], KeptAnswer] = field(default_factory=dict)
    merge_state: tuple[Multihash, Multihash] | None = None
    remotes: list[Remote] = field(default_factory=list)
    replaced: list[tuple[ReplacedHistory, list[StoredBlock]]] = field(default_factory=list)
    verified: Verified | None = None


@dataclass(slots=True)
class Tables:
    """All that is kept."""

    lock: RLock = field(default_factory=RLock)
    arrivals: int = 0
    entries: int = 0
    datasets: dict[DatasetId, KeptDataset] = field(default_factory=dict)
    attestations: dict[Multihash, tuple[int, Attestation]] = field(default_factory=dict)
    documents: dict[bytes, EvidenceDocument] = field(default_factory=dict)
    seen_heads: dict[DatasetId, SeenHead] = field(default_factory=dict)
    repositories: dict[str, Repository] = field(default_factory=dict)
    peers: dict[str, Peer] = field(default_factory=dict)
    named_peers: set[str] = field(default_factory=set)
    peer_records: tuple[bytes, ...] = ()
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    gossip_items: dict[bytes, KeptItem] = field(default_factory=dict)
    subscriptions: dict[DatasetId, Subscription] = field(default_factory=dict)
    stage_totals: dict[tuple[str, str], StageTotal] = field(default_factory=dict)

    def get(self, dataset_id: DatasetId) -> KeptDataset:
        """Return a dataset.

        Raises:
            DatasetNotFoundError: It is not here.
        """
        if dataset_id not in self.datasets:
            raise DatasetNotFoundError(dataset_id)
        return self.datasets[dataset_id]

    def next_entry(self) -> int:
        """Give the number of the next entry of quarantine: from 1, without gaps, as the database does."""
        self.entries += 1
        return self.entries

    def next_arrival(self) -> int:
        """Count what arrives, whatever it is."""
        self.arrivals += 1
        return self.arrivals

    def keep_attestation(self, attestation: Attestation) -> bool:
        """Keep an attestation; say whether it is new."""
        if attestation.id in self.attestations:
            return False
        self.attestations[attestation.id] = (self.next_arrival(), attestation)
        return True

    def keep_document(self, document: EvidenceDocument) -> bool:
        """Keep a document; say whether it is new."""
        if document.raw in self.documents:
            return False
        self.documents[document.raw] = document
        return True


class MemoryPort:
    """What every port has in common."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables


def as_stored(block: NewBlock) -> StoredBlock:
    """Return a block as it is read."""
    return StoredBlock(block.sequence_number, block.hash, block.raw, block.signature)


def require_block(kept: KeptDataset, sequence_number: int, block_hash: Multihash) -> None:
    """Check that a chain has a block.

    Raises:
        BlockNotFoundError: It has not.
    """
    if sequence_number >= len(kept.blocks) or kept.blocks[sequence_number].hash != block_hash:
        raise BlockNotFoundError(kept.record.id, block_hash)
