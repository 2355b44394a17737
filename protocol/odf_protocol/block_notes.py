"""Notes in the free-form attributes of a block of data, for what ODF has no event for.

Why rows are corrected by hand; and what an ingest looked up in other datasets, and how far they were, so that whoever
has them can see which rows its values came from. ``AddData.extra`` is part of what is hashed and signed, and ignored by
nodes that do not know the name.

Source: ODF "AddData", "ExtraAttributes"; clauses ING-28 in ``spec/ingest.md`` and CONV-8 in ``spec/conversion.md``.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import AddData
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.multihash import Multihash

CORRECTION: Final = "w3id.org/odf-node/correction"
MAX_REASON_CHARACTERS: Final = 1_000  # guess: a paragraph
LOOKUPS: Final = "w3id.org/odf-node/lookups"
MAX_LOOKUPS: Final = 200  # as many converters and validators as a manifest may declare


def note_correction(reason: str) -> ExtraAttributes:
    """Write a reason.

    Raises:
        MalformedError: It says nothing, is too long, or has characters that steer a terminal.
    """
    text = reason.strip()
    if not text or len(text) > MAX_REASON_CHARACTERS:
        expected = f"1 to {MAX_REASON_CHARACTERS} characters"
        raise MalformedError("reason of a correction", expected=expected, found=str(len(text)))
    if not _is_one_line(text):
        raise MalformedError("reason of a correction", expected="one line of plain text", found=ascii(text))
    return ExtraAttributes.of({CORRECTION: {"reason": text}})


def find_reason(event: object) -> str | None:
    """Find why a block corrects rows; None where no reason is there that ``note_correction`` takes."""
    if not isinstance(event, AddData) or event.extra is None:
        return None
    note = event.extra.to_dict().get(CORRECTION)
    reason = note.get("reason") if isinstance(note, dict) else None
    if not isinstance(reason, str) or len(reason) > MAX_REASON_CHARACTERS or not _is_one_line(reason):
        return None
    return reason


def _is_one_line(text: str) -> bool:
    return not any(unicodedata.category(each) in {"Cc", "Cs", "Cf", "Zl", "Zp"} for each in text)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A dataset, and the newest block of it that was read."""

    dataset_id: DatasetId
    head: Multihash


def note_lookups(lookups: Sequence[LookedUp]) -> ExtraAttributes | None:
    """Write what was looked up; None where nothing was."""
    different = dict.fromkeys(lookups)
    notes = [{"dataset": str(each.dataset_id), "head": str(each.head)} for each in different]
    return ExtraAttributes.of({LOOKUPS: notes}) if notes else None


def list_lookups(event: object) -> tuple[LookedUp, ...]:
    """List what a block says that it looked up; nothing where no note is there that ``note_lookups`` writes."""
    if not isinstance(event, AddData) or event.extra is None:
        return ()
    notes = event.extra.to_dict().get(LOOKUPS)
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
