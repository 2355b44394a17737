"""What others may make of the inputs of derivatives: steps run again for them, and records that name input files.

Records are signed and kept as they came, so what they name cannot be taken out; they are shown whole, or not at all.

Source: clauses EX-83 and EX-84 in ``spec/extensions/exchange.md``.
"""

from typing import Final

from odf_node.records.access import ReadGrants
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.events import SetTransform

ANYBODY: Final = ReadGrants(published=True)
"""Who a push or an export is for is not known to this node: they get what is published."""


def find_input(store: MetadataStore, dataset_id: DatasetId, reads: ReadGrants) -> DatasetRecord | None:
    """Return the record of an input if whoever asks may read it; to others it is as if it were not here (EX-83)."""
    record = store.find_dataset(dataset_id)
    return record if record is not None and reads.allow(record.id, published=record.published) else None


def may_see_records(store: MetadataStore, record: DatasetRecord, reads: ReadGrants) -> bool:
    """Say whether somebody may read every input that the dataset ever declared; one that is not here, nobody may."""
    if reads.everything or record.kind is DatasetKind.ROOT:
        return True
    inputs: set[DatasetId] = set()
    for stored in store.iter_landmarks(record.id):
        event = decode_block(stored.raw, expected_hash=stored.hash).event
        if isinstance(event, SetTransform):
            inputs.update(DatasetId.parse(item.dataset_ref) for item in event.inputs)
    return all(find_input(store, dataset_id, reads) is not None for dataset_id in inputs)
