"""All ports about what a home knows, as one type, and each adapter that fills them."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from odf_node.home import Home
from odf_node.ports.access import TokenStore
from odf_node.ports.audit import AuditLog
from odf_node.ports.chains import ChainStore, DefinitionStore
from odf_node.ports.commits import CommitStore
from odf_node.ports.datasets import DatasetRecord, DatasetStore, RemoteStore, SubscriptionStore
from odf_node.ports.evidence import DocumentStore, EvidenceStore
from odf_node.ports.gossip import GossipItems
from odf_node.ports.ingests import IngestStore, StageStore
from odf_node.ports.object_names import ObjectNames
from odf_node.ports.peers import PeerStore
from odf_node.ports.quarantine import QuarantineStore
from support.memory_store import MemoryStore
from support.open_stores import open_store


class Store(
    ChainStore,
    DatasetStore,
    DefinitionStore,
    CommitStore,
    DocumentStore,
    EvidenceStore,
    ObjectNames,
    IngestStore,
    QuarantineStore,
    RemoteStore,
    PeerStore,
    TokenStore,
    AuditLog,
    GossipItems,
    SubscriptionStore,
    StageStore,
    Protocol,
):
    """One object that fills every port."""


ADAPTERS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: open_store(Home(folder / "home")),
    "memory": lambda _folder: MemoryStore(),
}
"""By name: opens an empty store."""


def find_named(store: ChainStore, name: str) -> DatasetRecord | None:
    """Return the record of the dataset with this local name (compared exactly), or None."""
    return next((record for record in store.list_datasets() if record.name == name), None)
