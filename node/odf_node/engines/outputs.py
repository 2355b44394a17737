"""Files that an engine made, on their way into the object store."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from odf_node import rows
from odf_node.ports import ObjectStore, StagedObject
from odf_protocol.events import DataSlice, OffsetInterval
from odf_protocol.multihash import Multihash


@dataclass(slots=True)
class StagedOutputs:
    """Copies of engine outputs, private until they are committed; what is not committed goes with ``stack``."""

    objects: ObjectStore
    stack: ExitStack
    staged: dict[Multihash, StagedObject] = field(default_factory=dict)

    def stage(self, path: Path) -> StagedObject:
        """Copy ``path``, so that the engine cannot change what was looked at."""
        part = self.stack.enter_context(self.objects.stage_copy(path))
        part.flush()
        self.staged[part.hash] = part
        return part

    def stage_slice(
        self, path: Path | None, interval: OffsetInterval | None, logical_hash: Multihash | None
    ) -> DataSlice | None:
        """Stage the rows of a step and give their entry of the block; None where there are none."""
        if path is None or interval is None:
            return None
        part = self.stage(path)
        return rows.slices.describe_new_slice(
            part.path, interval, part.hash, part.size_bytes, logical_hash=logical_hash
        )
