"""What an ingest looked up in other datasets, and how far they were: a note in the free-form attributes of its event.

Whoever has those datasets can see which rows its values came from. ODF has no event for it; ``AddData.extra`` is part
of what is hashed and signed, and ignored by nodes that do not know the name.

Source: ODF "AddData", "ExtraAttributes"; clause CONV-8 in ``spec/conversion.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import AddData
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.multihash import Multihash

ATTRIBUTE: Final = "w3id.org/odf-node/lookups"
MAX_LOOKUPS: Final = 200  # as many converters and validators as a manifest may declare


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A dataset, and the newest block of it that was read."""

    dataset_id: DatasetId
    head: Multihash


def attributes_of(lookups: Sequence[LookedUp]) -> ExtraAttributes | None:
    """Write what was looked up; None where nothing was."""
    different = dict.fromkeys(lookups)
    notes = [{"dataset": str(each.dataset_id), "head": str(each.head)} for each in different]
    return ExtraAttributes.of({ATTRIBUTE: notes}) if notes else None


def list_lookups(event: object) -> tuple[LookedUp, ...]:
    """List what a block says that it looked up; nothing where no note is there that ``attributes_of`` writes."""
    if not isinstance(event, AddData) or event.extra is None:
        return ()
    notes = event.extra.to_dict().get(ATTRIBUTE)
    if not isinstance(notes, list) or len(notes) > MAX_LOOKUPS:
        return ()
    found = []
    for note in notes:
        match note:
            case {"dataset": str(dataset), "head": str(head)}:
                try:
                    found.append(LookedUp(DatasetId.parse(dataset), Multihash.parse(head)))
                except (MalformedError, UnsupportedError):
                    return ()
            case _:
                return ()
    return tuple(found)
