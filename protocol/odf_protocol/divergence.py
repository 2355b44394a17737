"""Two versions of one slice, compared cell by cell: what a publisher claims against what re-execution gives.

The result is small, whatever the size of the slices: counts are exact, the listed cells are the first ones in offset
order. It is data for machines (``to_json``) and the ground for a text that a person understands (``describe``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from odf_protocol.divergence_cause import CAUSE_TEXTS, Cause, find_cause_in_rows
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

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

    ``kind`` is one of ``schema``, ``row-count``, ``row-order``, ``cells``, ``watermark``, ``presence``, ``inputs``.
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


def compare_slices(
    published: pa.Table, recomputed: pa.Table, vocabulary: Vocabulary, prev_watermark: Timestamp | None = None
) -> Divergence | None:
    """Find what differs between two slices that should hold the same rows.

    Args:
        published: What the peer says, with the system columns first.
        recomputed: What the engine gave for the same step.
        vocabulary: The names of the system columns.
        prev_watermark: That stood before the step.

    Returns:
        None where every value of every column is equal. Its cause is set where the rows show it.
    """
    found = _compare(published, recomputed, vocabulary)
    if found is None or found.kind == "schema":
        return found
    cause = find_cause_in_rows(found.kind, found.columns, published, recomputed, vocabulary, prev_watermark)
    return replace(found, cause=cause)


def _compare(published: pa.Table, recomputed: pa.Table, vocabulary: Vocabulary) -> Divergence | None:
    if published.schema.names != recomputed.schema.names or published.schema.types != recomputed.schema.types:
        return _schema_divergence(published, recomputed)
    rows = min(published.num_rows, recomputed.num_rows)
    masks = {
        name: _differs(published.column(name).slice(0, rows), recomputed.column(name).slice(0, rows))
        for name in published.schema.names
    }
    columns = tuple(name for name, mask in masks.items() if pc.any(mask).as_py())
    if not columns and published.num_rows == recomputed.num_rows:
        return None
    cells = tuple(_list_cells(published, recomputed, masks, columns, vocabulary))
    if published.num_rows != recomputed.num_rows:
        return Divergence(
            kind="row-count",
            columns=columns,
            differing_rows=_any_row(masks, columns) + abs(published.num_rows - recomputed.num_rows),
            published_rows=published.num_rows,
            recomputed_rows=recomputed.num_rows,
            cells=cells,
            detail=f"{published.num_rows:,} rows published, {recomputed.num_rows:,} recomputed",
        )
    reordered = _same_rows_in_other_order(published, recomputed, vocabulary)
    return Divergence(
        kind="row-order" if reordered else "cells",
        columns=columns,
        differing_rows=_any_row(masks, columns),
        published_rows=published.num_rows,
        recomputed_rows=recomputed.num_rows,
        cells=cells,
        detail="the same rows in another order" if reordered else "",
    )


def _schema_divergence(published: pa.Table, recomputed: pa.Table) -> Divergence:
    left = {field.name: str(field.type) for field in published.schema}
    right = {field.name: str(field.type) for field in recomputed.schema}
    columns = tuple(name for name in {**left, **right} if left.get(name) != right.get(name))
    parts = [
        f"{name}: published {left.get(name, 'absent')}, recomputed {right.get(name, 'absent')}" for name in columns
    ]
    return Divergence(
        kind="schema",
        columns=columns,
        differing_rows=0,
        published_rows=published.num_rows,
        recomputed_rows=recomputed.num_rows,
        cells=(),
        detail="the columns differ: " + ("; ".join(parts) or "another order"),
    )


def _differs(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Compare as the logical hash does: null equals null, NaN equals NaN, 0.0 does not equal -0.0."""
    if pa.types.is_nested(left.type):
        return pa.chunked_array([pa.array([a != b for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)])])
    unequal = pc.not_equal(left, right)
    if pa.types.is_floating(left.type):
        unequal = pc.and_not(unequal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
        # One divided by a zero shows its sign.
        signs = [pc.divide(1.0, side.cast(pa.float64())) for side in (left, right)]
        both_zero = pc.and_(pc.equal(left.cast(pa.float64()), 0.0), pc.equal(right.cast(pa.float64()), 0.0))
        unequal = pc.or_(unequal, pc.and_(both_zero, pc.not_equal(*signs)))
    return pc.fill_null(unequal, pc.xor(pc.is_null(left), pc.is_null(right)))  # null where exactly one side is, or both


def _any_row(masks: dict[str, pa.ChunkedArray], columns: tuple[str, ...]) -> int:
    combined: Any = None
    for name in columns:
        combined = masks[name] if combined is None else pc.or_(combined, masks[name])
    return 0 if combined is None else int(pc.sum(combined).as_py() or 0)


def _list_cells(
    published: pa.Table,
    recomputed: pa.Table,
    masks: dict[str, pa.ChunkedArray],
    columns: tuple[str, ...],
    vocabulary: Vocabulary,
) -> Iterator[CellDifference]:
    found: list[tuple[int, str]] = []
    for name in columns:
        positions = pc.indices_nonzero(masks[name]).slice(0, MAX_LISTED_CELLS).to_pylist()
        found.extend((int(position), name) for position in positions)
    order = {name: index for index, name in enumerate(columns)}
    for position, name in sorted(found, key=lambda item: (item[0], order[item[1]]))[:MAX_LISTED_CELLS]:
        yield CellDifference(
            offset=int(recomputed.column(vocabulary.offset)[position].as_py()),
            column=name,
            published=_text(published.column(name)[position]),
            recomputed=_text(recomputed.column(name)[position]),
            key=_row_key(recomputed, position, vocabulary),
        )


def _row_key(table: pa.Table, position: int, vocabulary: Vocabulary) -> str:
    """Name a row for people: its event time and its leading text columns."""
    parts = []
    for field in table.schema:
        if field.name == vocabulary.event_time:
            value = table.column(field.name)[position].as_py()
            parts.append(f"{value:%Y-%m-%d}" if value is not None else "no event time")
        elif pa.types.is_string(field.type):
            parts.append(_text(table.column(field.name)[position]) or "null")
    return ", ".join(parts[:3])


def _same_rows_in_other_order(published: pa.Table, recomputed: pa.Table, vocabulary: Vocabulary) -> bool:
    names = [name for name in published.schema.names if name != vocabulary.offset]
    if any(pa.types.is_nested(published.schema.field(name).type) for name in names):
        return False
    keys = [(name, "ascending") for name in names]
    left = published.select(names).sort_by(keys)
    right = recomputed.select(names).sort_by(keys)
    return all(not pc.any(_differs(left.column(name), right.column(name))).as_py() for name in names)


def _text(scalar: pa.Scalar) -> str | None:
    """Write a cell as people read it: decimals and numbers as they are, times in RFC 3339, bytes in hex."""
    value = scalar.as_py()
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("+00:00", "Z")
    return str(value)
