"""Blocks of a chain with what accompanies them, ready to be packed."""

from collections.abc import Iterator

from odf_node.ports.chains import ChainStore
from odf_node.ports.evidence import EvidenceStore
from odf_protocol.did import DatasetId
from odf_protocol.exchange.limits import MAX_PACK_BLOCKS
from odf_protocol.exchange.packs import PackedBlock


def iter_packed(
    chains: ChainStore, evidence: EvidenceStore, dataset_id: DatasetId, after: int, upto: int, *, with_records: bool
) -> Iterator[PackedBlock]:
    """Yield the blocks above ``after`` and not above ``upto`` with signature and, if wanted, replay record.

    No more than one pack is filled from it: records behind the last block that a pack can hold are left out.
    """
    if after >= upto:
        return
    last = min(upto, after + MAX_PACK_BLOCKS)
    records = evidence.iter_replay_records(dataset_id, after=after, upto=last) if with_records else iter(())
    nothing = (upto + 1, b"")
    number, record = next(records, nothing)
    for block in chains.iter_blocks(dataset_id, after=after, upto=upto):
        if number == block.sequence_number:
            yield PackedBlock(block.raw, block.signature, record)
            number, record = next(records, nothing)
        else:
            yield PackedBlock(block.raw, block.signature)
