"""Which objects a block names: what a receiver must have before the block can be accepted."""

from collections.abc import Iterator
from dataclasses import dataclass

from odf_protocol.events import AddData, Event, ExecuteTransform
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class WantedObject:
    """An object as its block names it."""

    kind: ObjectKind
    hash: Multihash
    size_bytes: int


def iter_wanted(event: Event) -> Iterator[WantedObject]:
    """Yield the objects that the event adds: its slice, then its checkpoint."""
    if not isinstance(event, AddData | ExecuteTransform):
        return
    if event.new_data is not None:
        yield WantedObject(ObjectKind.DATA, event.new_data.physical_hash, event.new_data.size)
    if event.new_checkpoint is not None:
        yield WantedObject(ObjectKind.CHECKPOINT, event.new_checkpoint.physical_hash, event.new_checkpoint.size)
