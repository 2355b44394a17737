"""What a write states in its block, for whoever reads the chain: a note in the free-form attributes of its data.

It is part of what is hashed and signed, and nothing to nodes that do not know its name. Of a chain that came from
elsewhere it is the writer's word, which is shown and decides nothing.

Source: clause TABLE-7 in ``spec/plug-ins/tables.md``; ODF "AddData", "ExtraAttributes".
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from odf_node.front.table_operations import ChangedRows
from odf_node.row_counts import RowCounts
from odf_protocol.events import AddData
from odf_protocol.events.extra_attributes import ExtraAttributes

WRITE: Final = "w3id.org/odf-node/write"
OPERATIONS: Final = frozenset({"insert", "upsert", "delete", "overwrite", "restore"})
_MAX_CHARACTERS: Final = 1_000  # as the reason of a correction
_MAX_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WriteNote:
    """What a block states of the write that made it; see ``TableVersion``."""

    operation: str
    changed: ChangedRows
    detail: str


def note_write(operation: str, counts: RowCounts, detail: Mapping[str, Any]) -> ExtraAttributes:
    """Write a note."""
    plain = {name: value[:_MAX_CHARACTERS] if isinstance(value, str) else value for name, value in detail.items()}
    note = {
        "operation": operation,
        "addedRows": counts.added,
        "correctedRows": counts.corrected,
        "retractedRows": counts.retracted,
        **plain,
    }
    return ExtraAttributes.of({WRITE: note})


def find_write(event: object) -> WriteNote | None:
    """Find the note of a block; None where no note is there that ``note_write`` writes."""
    if not isinstance(event, AddData) or event.extra is None:
        return None
    note = event.extra.to_dict().get(WRITE)
    if not isinstance(note, dict):
        return None
    operation = note.get("operation")
    if not isinstance(operation, str) or operation not in OPERATIONS:
        return None
    added, corrected, retracted = (_count(note, name) for name in ("added", "corrected", "retracted"))
    if added is None or corrected is None or retracted is None:
        return None
    return WriteNote(operation, ChangedRows(added, corrected, retracted), _describe(note))


def _count(note: Mapping[str, Any], name: str) -> int | None:
    found = note.get(f"{name}Rows")
    return found if type(found) is int and 0 <= found <= _MAX_COUNT else None


def _describe(rest: Mapping[str, Any]) -> str:
    match rest:
        case {"version": int(version)}:
            return f"version {version}"
        case {"where": str(where)}:
            shown = where[:_MAX_CHARACTERS]
            return "".join(
                " " if unicodedata.category(each) in {"Cc", "Cs", "Cf", "Zl", "Zp"} else each for each in shown
            )
    return ""
