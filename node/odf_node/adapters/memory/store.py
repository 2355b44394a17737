"""The store: every port on the same tables."""

from odf_node.adapters.memory.chains import MemoryChains
from odf_node.adapters.memory.commits import MemoryCommits
from odf_node.adapters.memory.datasets import MemoryDatasets
from odf_node.adapters.memory.definitions import MemoryDefinitions
from odf_node.adapters.memory.documents import MemoryDocuments
from odf_node.adapters.memory.evidence import MemoryEvidence
from odf_node.adapters.memory.ingests import MemoryIngests
from odf_node.adapters.memory.object_names import MemoryObjectNames
from odf_node.adapters.memory.others import (
    MemoryAuditLog,
    MemoryGossipItems,
    MemoryPeers,
    MemoryRemotes,
    MemorySubscriptions,
    MemoryTokens,
)
from odf_node.adapters.memory.quarantine import MemoryQuarantine
from odf_node.adapters.memory.stages import MemoryStages
from odf_node.adapters.memory.tables import Tables


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
