"""The objects of one dataset, for whoever sends them on: content addresses are not permissions.

Source: clauses EX-81 and EX-87 in ``spec/extensions/exchange.md``.
"""

from typing import BinaryIO

from odf_node.ports.errors import ObjectNotFoundError
from odf_node.ports.object_names import ObjectNames
from odf_node.ports.objects import ObjectStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.multihash import Multihash


class DatasetObjects:
    """``SentObjects``: what the dataset has; of what else is here nothing is told, not even that it is."""

    def __init__(self, objects: ObjectStore, names: ObjectNames, dataset_id: DatasetId) -> None:
        self._objects = objects
        self._names = names
        self._dataset_id = dataset_id

    def get_size(self, object_hash: Multihash) -> int:
        self._require_had(object_hash)
        return self._objects.get_size(object_hash)

    def open(self, object_hash: Multihash) -> BinaryIO:
        self._require_had(object_hash)
        return self._objects.open(object_hash)

    def _require_had(self, object_hash: Multihash) -> None:
        if not self._names.names_object(self._dataset_id, object_hash):
            raise RejectedError(
                "EX-87 objects-of-the-push", expected="a receiver that asks for what is pushed to it", found=object_hash
            )
        if not self._names.has_dataset_object(self._dataset_id, object_hash):
            raise ObjectNotFoundError(object_hash)
