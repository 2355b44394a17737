"""How two versions of one slice differ: what a publisher claims against what re-execution gives.

The result is small, whatever the size of the slices: counts are exact, the listed cells are the first ones in offset
order. It is data for machines (``to_json``) and the ground for a text that a person understands (``describe``). Its
cause is where a person should look first, never a reason to accept:

=================  ===============================================================================================
cause              found when
=================  ===============================================================================================
missing-input      what the step read is not what is held here, so nothing was compared
order              the same rows stand in another order
float              only floating-point cells differ, each by no more than another order of adding up gives
late-data          whole rows differ, all older than the watermark that stood before the step
engine-version     none of these, and the step record names another engine
tampering          none of these, and the engine is the same, or nobody signed which it was
=================  ===============================================================================================

Source: clause REPLAY-10 in ``spec/extensions/replay.md``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Self


class Cause(StrEnum):
    """Why a step may not have been reproduced; see the module's table."""

    MISSING_INPUT = "missing-input"
    ORDER = "order"
    FLOAT = "float"
    LATE_DATA = "late-data"
    ENGINE_VERSION = "engine-version"
    TAMPERING = "tampering"


CAUSE_TEXTS: Final = {
    Cause.MISSING_INPUT: "what the step read is not what this node holds",
    Cause.ORDER: "no value differs: the writer's engine kept another order",
    Cause.FLOAT: "only last digits of floating-point numbers differ, as from adding up in another order",
    Cause.LATE_DATA: "only rows older than the watermark differ: the two sides disagree about what came too late",
    Cause.ENGINE_VERSION: "it was made by another build of the engine",
    Cause.TAMPERING: "neither order, rounding, late rows nor another engine explains it: data or query were changed",
}


MAX_LISTED_CELLS: Final = 100
"""How many differing cells and rows a report lists.  # guess: a screen or two; the counts beside them are exact"""


_REPORTED: Final = {"reexecuted": "recomputed", "reexecuted_rows": "recomputed_rows"}
_READ: Final = {name: field for field, name in _REPORTED.items()}


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One cell that differs. ``key`` names the row by its other leading columns, for people."""

    offset: int
    column: str
    published: str | None
    reexecuted: str | None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """How a published slice differs from its re-execution.

    ``kind`` is one of ``schema``, ``row-count``, ``row-order``, ``cells``, ``watermark``, ``presence``, ``checkpoint``,
    ``inputs``.
    ``cause`` is a ``Cause``: what most likely lies behind it; None until somebody has looked.
    """

    kind: str
    columns: tuple[str, ...]
    differing_rows: int
    published_rows: int
    reexecuted_rows: int
    cells: tuple[CellDifference, ...]
    detail: str = ""
    cause: Cause | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain JSON values; the names are those of evidence that homes hold already."""
        values = _renamed(asdict(self), _REPORTED)
        return {**values, "cells": tuple(_renamed(cell, _REPORTED) for cell in values["cells"])}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read ``to_json``'s values, from a process of ours."""
        values = _renamed(values, _READ)
        cells = tuple(CellDifference(**_renamed(cell, _READ)) for cell in values["cells"])
        cause = None if values["cause"] is None else Cause(values["cause"])
        return cls(**{**values, "columns": tuple(values["columns"]), "cells": cells, "cause": cause})

    def explain(self) -> str:
        """Say what differs, and what that most likely means."""
        return self.describe() + ("" if self.cause is None else f"; {CAUSE_TEXTS[self.cause]}")

    def describe(self) -> str:
        """Say in one line what differs."""
        if self.detail and not self.cells:
            return self.detail
        rows = f"{self.differing_rows:,} of {max(self.published_rows, self.reexecuted_rows):,} rows differ"
        columns = ", ".join(self.columns)
        return f"{rows}, in column{'s' if len(self.columns) != 1 else ''} {columns}" + (
            f" ({self.detail})" if self.detail else ""
        )
