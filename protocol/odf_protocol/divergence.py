"""How two versions of one slice differ: what a publisher claims against what re-execution gives.

The result is small, whatever the size of the slices: counts are exact, the listed cells are the first ones in offset
order. It is data for machines (``to_json``) and the ground for a text that a person understands (``describe``).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from odf_protocol.divergence_cause import CAUSE_TEXTS, Cause

MAX_LISTED_CELLS: Final = 100
"""How many differing cells and rows a report lists.  # guess: a screen or two; the counts beside them are exact"""


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One cell that differs. ``key`` names the row by its other leading columns, for people."""

    offset: int
    column: str
    published: str | None
    recomputed: str | None
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
    recomputed_rows: int
    cells: tuple[CellDifference, ...]
    detail: str = ""
    cause: Cause | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read ``to_json``'s values, from a process of ours."""
        cells = tuple(CellDifference(**cell) for cell in values["cells"])
        cause = None if values["cause"] is None else Cause(values["cause"])
        return cls(**{**values, "columns": tuple(values["columns"]), "cells": cells, "cause": cause})

    def explain(self) -> str:
        """Say what differs, and what that most likely means."""
        return self.describe() + ("" if self.cause is None else f"; {CAUSE_TEXTS[self.cause]}")

    def describe(self) -> str:
        """Say in one line what differs."""
        if self.detail and not self.cells:
            return self.detail
        rows = f"{self.differing_rows:,} of {max(self.published_rows, self.recomputed_rows):,} rows differ"
        columns = ", ".join(self.columns)
        return f"{rows}, in column{'s' if len(self.columns) != 1 else ''} {columns}" + (
            f" ({self.detail})" if self.detail else ""
        )
