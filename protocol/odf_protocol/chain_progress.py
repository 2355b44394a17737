"""How far a chain has come, read from the stored state without what rules and events need: for lists of datasets.

Source: not part of any protocol; ``chain.stored_state`` writes the state.
"""

import json
from dataclasses import dataclass
from typing import Any

from odf_protocol.coverage import Coverage, Lapse
from odf_protocol.errors import CorruptError, OdfError
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class ChainProgress:
    """What a dataset holds.

    Attributes:
        row_count: Rows from offset 0 on.
        watermark: Event time that is complete, None while none was stated.
        partial: What makes it less than its declared query over the whole input, in words (PLAN-9, PLAN-10).
    """

    row_count: int
    watermark: Timestamp | None
    partial: str = ""


def decode_progress(data: bytes) -> ChainProgress:
    """Read them from a stored chain state; the rest is not looked at.

    Raises:
        CorruptError: They are not there as ``ChainState.to_bytes`` writes them.
    """
    try:
        stored = json.loads(data)
        row_count = range(stored.get("last_offset", -1) + 1).stop  # a range has whole numbers only
        watermark = stored.get("watermark")
        partial = _read_coverage(stored.get("coverage", {})).describe()
        return ChainProgress(row_count, None if watermark is None else Timestamp.parse(watermark), partial)
    except (ValueError, TypeError, AttributeError, OdfError) as error:
        raise CorruptError(f"stored chain state: {error}") from error


def _read_coverage(stored: dict[str, Any]) -> Coverage:
    return Coverage(**{**stored, "lapses": tuple(Lapse(**each) for each in stored.get("lapses", ()))})
