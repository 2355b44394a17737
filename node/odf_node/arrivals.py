"""What is here for whoever brings a dataset: content addresses are not permissions.

Source: clauses EX-80 to EX-82 in ``spec/extensions/exchange.md``.
"""

from typing import Final

from odf_node.ports.object_names import ObjectNames
from odf_node.ports.objects import Arrivals, ObjectStore
from odf_protocol.did import DatasetId

BY_PULLS: Final = "pull"
"""Whoever brings what this node's operator asks for: a dataset is had from several places."""


def open_arrivals(object_names: ObjectNames, objects: ObjectStore, dataset_id: DatasetId, brought_by: str) -> Arrivals:
    """Open what somebody brings for a dataset; beside it only what the dataset itself has counts as here (EX-80)."""
    return objects.arrivals(
        dataset_id, brought_by, already=lambda object_hash: object_names.has_dataset_object(dataset_id, object_hash)
    )
