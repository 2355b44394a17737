"""All that a node knows beside its objects and keys, where one port is too few: what composition joins, and tests."""

from typing import Protocol

from odf_node.ports.access import TokenStore
from odf_node.ports.audit import AuditLog
from odf_node.ports.chains import ChainStore
from odf_node.ports.commits import CommitStore
from odf_node.ports.datasets import DatasetStore
from odf_node.ports.documents import DocumentStore
from odf_node.ports.evidence import EvidenceStore
from odf_node.ports.gossip import GossipItems
from odf_node.ports.ingests import IngestStore
from odf_node.ports.object_names import ObjectNames
from odf_node.ports.peers import PeerStore
from odf_node.ports.remotes import RemoteStore
from odf_node.ports.subscriptions import SubscriptionStore


class MetadataStore(
    ChainStore,
    DatasetStore,
    CommitStore,
    DocumentStore,
    EvidenceStore,
    ObjectNames,
    IngestStore,
    RemoteStore,
    PeerStore,
    TokenStore,
    AuditLog,
    GossipItems,
    SubscriptionStore,
    Protocol,
):
    """One object that fills every port about what a home knows."""

    def close(self) -> None:
        """Release files; the store is not used afterwards."""
        ...
