"""The objects that a manifest can hold.

==================  ========  ==============================================================
kind                version   content
==================  ========  ==============================================================
DatasetSnapshot     1         what a new dataset shall be: name, kind, events in order
MetadataEvent       1         one event
MetadataBlock       2 or 3    a block as a chain holds it; the version is the block's own
==================  ========  ==============================================================

Source: ODF "Manifests", "DatasetSnapshot", "MetadataBlock".
"""

from dataclasses import dataclass
from typing import Final

from odf_protocol.events import DatasetKind, Event
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.envelope import SUPPORTED_VERSIONS

#: Versions that are understood, newest last, by the manifest's kind.
VERSIONS: Final[dict[str, tuple[int, ...]]] = {
    "DatasetSnapshot": (1,),
    "MetadataEvent": (1,),
    "MetadataBlock": SUPPORTED_VERSIONS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSnapshot:
    """What a user writes to define a dataset.

    Attributes:
        name: Proposed name; the identity is made when the dataset is.
        kind: Root or derivative.
        metadata: Events in the order in which they become blocks, without the Seed.
    """

    name: str
    kind: DatasetKind
    metadata: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockManifest:
    """A block as text states it: no bytes, so no hash. Encoding it need not give the block that was printed."""

    version: int
    system_time: Timestamp
    prev_block_hash: Multihash | None
    sequence_number: int
    event: Event


Manifest = DatasetSnapshot | BlockManifest | Event
