"""Files that an engine made, on their way into the object store."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from odf_node.ports import ObjectStore, StagedObject
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
