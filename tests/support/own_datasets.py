"""The one dataset of a node that wrote it itself."""

from odf_node.composition import Node
from odf_node.datasets.writer import ChainWriter
from odf_node.records.datasets import DatasetRecord
from odf_protocol.events import SetInfo
from support.offers import NOW


def record_of(node: Node) -> DatasetRecord:
    """Return the record of the one dataset of a node."""
    (record,) = node.store.list_datasets()
    return record


def write(node: Node, text: str) -> DatasetRecord:
    """Add a block to it, signed with the key that is in force."""
    writer = ChainWriter.continue_chain(node.store, node.keys, record_of(node).id)
    writer.add(SetInfo(description=text), system_time=NOW)
    return writer.commit(signed_at=NOW, objects=node.objects, staged={})
