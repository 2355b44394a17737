"""What datasets say of themselves."""

from collections.abc import Iterator

from odf_node.ports.datasets import BlockRole
from odf_protocol.did import DatasetId
from support.memory_store.tables import MemoryPort


class MemoryDefinitions(MemoryPort):
    """``DefinitionStore`` in memory."""

    def iter_definitions(self) -> Iterator[tuple[DatasetId, bytes]]:
        with self._tables.lock:
            kept = list(self._tables.datasets.items())
        for dataset_id, each in kept:
            newest = {block.role: block.raw for block in each.blocks if block.role < BlockRole.DEFINITION}
            all_others = (block.raw for block in each.blocks if block.role is BlockRole.DEFINITION)
            yield dataset_id, b"\0".join([*all_others, *(newest[role] for role in sorted(newest))])
