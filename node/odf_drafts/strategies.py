"""How the rows of further files meet those that a dataset has: what a first file tells of it.

Source: ODF "Merge strategies"; clauses ING-24 and ING-47 in ``spec/ingest.md``.
"""

import re
from enum import StrEnum
from typing import Final

from odf_drafts.columns import DraftColumn
from odf_drafts.keys import Key


class DraftStrategy(StrEnum):
    """How rows meet those that a dataset has."""

    APPEND = "Append"
    LEDGER = "Ledger"
    SNAPSHOT = "Snapshot"


LARGEST_RETRACTED_SHARE: Final = 0.2
"""Of the current rows.  # guess: few lists lose a fifth from one file to the next; what is cut or wrong loses more"""

_CHANGE_TIMES: Final = ("updat", "modif", "chang", "last", "edit", "valid", "sync")
"""Beginnings of words in names of times that say when a row was changed, and not when it happened.  # guess"""


def choose_strategy(key: Key | None, event_time: DraftColumn | None) -> DraftStrategy:
    """Choose how rows of further files meet those that are there (ING-24).

    Rows with a time of day are events, and the next file brings others. A day in the key says that a file has its
    history with it, and no time that it is a list: both are whole files.
    """
    if key is None:
        return DraftStrategy.APPEND
    words = "" if event_time is None else event_time.name.lower()
    is_change = any(part.startswith(_CHANGE_TIMES) for part in re.split(r"[^a-z]+", words))
    if event_time is None or event_time.type != "Timestamp" or is_change:
        return DraftStrategy.SNAPSHOT
    return DraftStrategy.LEDGER if key.identifies else DraftStrategy.APPEND
