"""Why a block corrects rows by hand: a note in the free-form attributes of its event.

ODF has no event for it. ``AddData.extra`` is free-form, part of what is hashed and signed, and ignored by nodes that do
not know the name.

Source: ODF "AddData", "ExtraAttributes"; clause ING-28 in ``spec/ingest.md``.
"""

import unicodedata
from typing import Final

from odf_protocol.errors import MalformedError
from odf_protocol.events import AddData
from odf_protocol.events.extra_attributes import ExtraAttributes

ATTRIBUTE: Final = "w3id.org/odf-node/correction"
MAX_REASON_CHARACTERS: Final = 1_000  # guess: a paragraph


def attributes_of(reason: str) -> ExtraAttributes:
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
    return ExtraAttributes.of({ATTRIBUTE: {"reason": text}})


def find_reason(event: object) -> str | None:
    """Find why a block corrects rows; None where no reason is there that ``attributes_of`` takes."""
    if not isinstance(event, AddData) or event.extra is None:
        return None
    note = event.extra.to_dict().get(ATTRIBUTE)
    reason = note.get("reason") if isinstance(note, dict) else None
    if not isinstance(reason, str) or len(reason) > MAX_REASON_CHARACTERS or not _is_one_line(reason):
        return None
    return reason


def _is_one_line(text: str) -> bool:
    return not any(unicodedata.category(each) in {"Cc", "Cs", "Cf", "Zl", "Zp"} for each in text)
