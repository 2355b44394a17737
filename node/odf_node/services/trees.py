"""Trees over slices: computed from files that are held, kept while they are asked about."""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from odf_node.exchange.limits import KEPT_TREES
from odf_node.ports import ObjectStore
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary


class KeptTrees:
    """``SliceTrees`` over an object store; one tree is computed at a time, so that strangers cannot take all cores."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._lock = Lock()
        self._kept: OrderedDict[Multihash, TableSummary] = OrderedDict()

    def get_summary(self, object_hash: Multihash) -> "TableSummary":
        """See ``SliceTrees``."""
        with self._lock:
            found = self._kept.get(object_hash)
            if found is None:
                from odf_node.services.slices import summarise

                found = summarise(self._objects.get_path(object_hash))
                self._kept[object_hash] = found
                while len(self._kept) > KEPT_TREES:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(object_hash)
            return found
