"""What arrives by gossip and is of use to the rest of the node: findings, proofs, heads of datasets that matter here.

A dataset matters when it is held or subscribed to. Everything else that gossip carries is kept by gossip alone.
"""

from dataclasses import dataclass
from typing import Protocol

from odf_node.ports import Attestation as KeptFinding
from odf_node.ports import Clock, MetadataStore
from odf_node.ports.gossip import GossipStore
from odf_node.services.disputes import Disputes
from odf_node.services.freshness import Freshness
from odf_protocol.did import DatasetId
from odf_protocol.gossip.item import Item, ItemKind
from odf_protocol.multihash import Multihash
from odf_protocol.statements import decode_statement

SOURCE = "gossip"
"""Where a head came from, in the words of the store."""


class HearsayStore(MetadataStore, GossipStore, Protocol):
    """The store as it is needed here."""

    # One class of two protocols; nothing of its own.


@dataclass(frozen=True, slots=True)
class Hearsay:
    """``GossipSink`` of the node: findings go to the statements, proofs freeze, heads are kept in mind."""

    store: HearsayStore
    clock: Clock

    def accept(self, item: Item) -> None:
        """See ``GossipSink``."""
        if not self._matters(item.dataset_id):
            return
        now = self.clock.now()
        match item.kind:
            case ItemKind.ATTESTATION:
                said = decode_statement(item.raw)
                self.store.put_attestation(
                    KeptFinding(
                        id=Multihash.of_sha3_256(item.raw),
                        dataset_id=said.dataset_id,
                        first_sequence_number=said.first.sequence_number,
                        last_sequence_number=said.last.sequence_number,
                        last_block_hash=said.last.hash,
                        attester=said.node,
                        raw=item.raw,
                        received_at=now,
                    )
                )
            case ItemKind.EQUIVOCATION:
                Disputes(self.store).learn([item.raw], item.dataset_id, now=now)
            case ItemKind.HEAD:
                Freshness(self.store).learn(item.raw, item.dataset_id, source=SOURCE, now=now)
            case ItemKind.KEY_EVENT:
                pass  # the keys that speak for a dataset are learned with its chain

    def _matters(self, dataset_id: DatasetId) -> bool:
        if self.store.find_dataset(dataset_id) is not None:
            return True
        return any(one.dataset_id == dataset_id for one in self.store.list_subscriptions())
