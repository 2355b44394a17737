"""The store: every port on the same tables."""

from support.memory_store.chains import MemoryChains
from support.memory_store.commits import MemoryCommits
from support.memory_store.datasets import MemoryDatasets
from support.memory_store.definitions import MemoryDefinitions
from support.memory_store.documents import MemoryDocuments
from support.memory_store.evidence import MemoryEvidence
from support.memory_store.ingests import MemoryIngests
from support.memory_store.object_names import MemoryObjectNames
from support.memory_store.others import (
    MemoryAuditLog,
    MemoryGossipItems,
    MemoryPeers,
    MemoryRemotes,
    MemorySubscriptions,
    MemoryTokens,
)
from support.memory_store.quarantine import MemoryQuarantine
from support.memory_store.stages import MemoryStages
from support.memory_store.tables import Tables


class MemoryStore(
    MemoryChains,
    MemoryDatasets,
    MemoryDefinitions,
    MemoryCommits,
    MemoryDocuments,
    MemoryEvidence,
    MemoryObjectNames,
    MemoryIngests,
    MemoryStages,
    MemoryQuarantine,
    MemoryRemotes,
    MemoryPeers,
    MemoryTokens,
    MemoryAuditLog,
    MemoryGossipItems,
    MemorySubscriptions,
):
    """All ports in memory."""

    def __init__(self) -> None:
        super().__init__(Tables())
