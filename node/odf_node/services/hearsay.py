"""What arrives by gossip and belongs into the store: attestations about datasets that are here."""

from dataclasses import dataclass

from odf_node.ports import Attestation as KeptAttestation
from odf_node.ports import Clock, MetadataStore
from odf_protocol.attestations import Attestation
from odf_protocol.gossip.item import Item
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class AttestationSink:
    """Keeps attestations about held datasets beside those that came with pulls, where policies look for them."""

    store: MetadataStore
    clock: Clock

    def accept(self, item: Item) -> None:
        """See ``GossipSink``."""
        said = item.statement
        if not isinstance(said, Attestation) or self.store.find_dataset(said.dataset_id) is None:
            return
        self.store.put_attestation(
            KeptAttestation(
                id=Multihash.of_sha3_256(said.raw),
                dataset_id=said.dataset_id,
                first_sequence_number=said.first.sequence_number,
                last_sequence_number=said.last.sequence_number,
                last_block_hash=said.last.hash,
                attester=said.node,
                raw=said.raw,
                received_at=self.clock.now(),
            )
        )
