"""One home of a node, as use cases are given it: its folder, what it keeps, its keys, and the time of the run."""

from dataclasses import dataclass

from odf_node.home_folder import HomeFolder
from odf_node.ports.clock import Clock
from odf_node.ports.keys import KeyStore
from odf_node.ports.objects import ObjectUpkeep
from odf_node.store import MetadataStore
from odf_node.store.audit_trail import AuditTrail


@dataclass(frozen=True, slots=True)
class Home:
    """What a use case works on; beside it a use case takes what is foreign, as engines, peers and sources.

    Attributes:
        folder: The places of the home's files.
        store: Chains, and everything known about datasets.
        objects: Files of slices and checkpoints, by hash.
        keys: Private keys of the node and of its datasets.
        clock: The time that this run writes with.
        audit: Lines about what changed something.
    """

    folder: HomeFolder
    store: MetadataStore
    objects: ObjectUpkeep
    keys: KeyStore
    clock: Clock
    audit: AuditTrail
