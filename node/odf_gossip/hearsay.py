"""What arrives by gossip and is of use to the rest of the node: findings, proofs, heads of datasets that matter here.

A dataset matters when it is held or subscribed to. Everything else that gossip carries is kept by gossip alone.
"""

from contextlib import suppress
from dataclasses import dataclass

from odf_gossip_protocol.item import Item, ItemKind
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import HeadsFreshness
from odf_node.keys.logs import KeyLogs
from odf_node.ports.clock import Clock
from odf_node.records.audit import AuditEntry, Outcome
from odf_node.records.datasets import Origin
from odf_node.records.evidence import HeldAttestation
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.key_events import decode_key_event
from odf_protocol.statements import decode_statement

SOURCE = "gossip"
"""Where a head came from, in the words of the store."""


@dataclass(frozen=True, slots=True)
class Hearsay:
    """``GossipSink`` of the node: findings go to the statements, proofs freeze, heads are kept in mind."""

    store: MetadataStore
    clock: Clock

    def accept(self, item: Item) -> None:
        """See ``GossipSink``."""
        if not self._matters(item.dataset_id):
            return
        now = self.clock.now()
        match item.kind:
            case ItemKind.ATTESTATION:
                self.store.put_attestation(HeldAttestation.of(decode_statement(item.raw), now))
            case ItemKind.EQUIVOCATION | ItemKind.SETTLEMENT:
                Disputes(self.store).learn([item.raw], item.dataset_id, now=now)
            case ItemKind.HEAD:
                HeadsFreshness(self.store).learn(item.raw, item.dataset_id, source=SOURCE, now=now)
            case ItemKind.KEY_EVENT:
                self._learn_key_event(item)

    def _learn_key_event(self, item: Item) -> None:
        record = self.store.find_dataset(item.dataset_id)
        logs, now = KeyLogs(self.store), self.clock.now()
        if record is None or record.origin is not Origin.OWN:
            # What does not continue the log that is kept comes whole with the next pull.
            with suppress(RejectedError):
                logs.learn(item.dataset_id, [item.raw], now=now)
            return
        event = decode_key_event(item.raw)
        known = logs.get_history(item.dataset_id).events
        if event.hash in {each.hash for each in known}:
            return
        # Who made it has a key of ours (KEY-20): where we made another one, both together are a proof.
        self.store.append_audit(
            AuditEntry(
                at=now,
                actor=SOURCE,
                command="key event of another signer",
                subject=record.name,
                outcome=Outcome.REJECTED,
                detail=f"{event.signer} {event.explain()}: if that was not you, this key is stolen",
            )
        )

    def _matters(self, dataset_id: DatasetId) -> bool:
        if self.store.find_dataset(dataset_id) is not None:
            return True
        return any(one.dataset_id == dataset_id for one in self.store.list_subscriptions())
