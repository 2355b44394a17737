"""Two versions of one slice, compared cell by cell, and which causes of a difference the rows themselves can show.

Source: clause REPLAY-10 in ``spec/extensions/replay.md``.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_protocol.cell_values import cell_value
from odf_protocol.divergence import MAX_LISTED_CELLS, Cause, CellDifference, Divergence
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary


def compare_slices(
    published: pa.Table, reexecuted: pa.Table, vocabulary: Vocabulary, prev_watermark: Timestamp | None = None
) -> Divergence | None:
    """Find what differs between two slices that should hold the same rows.

    Args:
        published: What the peer says, with the system columns first.
        reexecuted: What the engine gave for the same step.
        vocabulary: The names of the system columns.
        prev_watermark: That stood before the step.

    Returns:
        None where every value of every column is equal. Its cause is set where the rows show it.
    """
    found = _compare(published, reexecuted, vocabulary)
    if found is None or found.kind == "schema":
        return found
    cause = find_cause_in_rows(found.kind, found.columns, published, reexecuted, vocabulary, prev_watermark)
    return replace(found, cause=cause)


def _compare(published: pa.Table, reexecuted: pa.Table, vocabulary: Vocabulary) -> Divergence | None:
    if published.schema.names != reexecuted.schema.names or published.schema.types != reexecuted.schema.types:
        return _schema_divergence(published, reexecuted)
    rows = min(published.num_rows, reexecuted.num_rows)
    masks = {
        name: _differs(published.column(name).slice(0, rows), reexecuted.column(name).slice(0, rows))
        for name in published.schema.names
    }
    columns = tuple(name for name, mask in masks.items() if pc.any(mask).as_py())
    if not columns and published.num_rows == reexecuted.num_rows:
        return None
    cells = tuple(_list_cells(published, reexecuted, masks, columns, vocabulary))
    if published.num_rows != reexecuted.num_rows:
        return Divergence(
            kind="row-count",
            columns=columns,
            differing_rows=_any_row(masks, columns) + abs(published.num_rows - reexecuted.num_rows),
            published_rows=published.num_rows,
            reexecuted_rows=reexecuted.num_rows,
            cells=cells,
            detail=f"{published.num_rows:,} rows published, {reexecuted.num_rows:,} re-executed",
        )
    reordered = _same_rows_in_other_order(published, reexecuted, vocabulary)
    return Divergence(
        kind="row-order" if reordered else "cells",
        columns=columns,
        differing_rows=_any_row(masks, columns),
        published_rows=published.num_rows,
        reexecuted_rows=reexecuted.num_rows,
        cells=cells,
        detail="the same rows in another order" if reordered else "",
    )


def _schema_divergence(published: pa.Table, reexecuted: pa.Table) -> Divergence:
    left = {field.name: str(field.type) for field in published.schema}
    right = {field.name: str(field.type) for field in reexecuted.schema}
    columns = tuple(name for name in {**left, **right} if left.get(name) != right.get(name))
    parts = [
        f"{name}: published {left.get(name, 'absent')}, re-executed {right.get(name, 'absent')}" for name in columns
    ]
    return Divergence(
        kind="schema",
        columns=columns,
        differing_rows=0,
        published_rows=published.num_rows,
        reexecuted_rows=reexecuted.num_rows,
        cells=(),
        detail="the columns differ: " + ("; ".join(parts) or "another order"),
    )


def _differs(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Compare as the logical hash does: null equals null, NaN equals NaN, 0.0 does not equal -0.0."""
    if pa.types.is_nested(left.type):
        # Arrow does not compare these. As text NaN is one word, and -0.0 another than 0.0.
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.chunked_array([pa.array([repr(a) != repr(b) for a, b in pairs], pa.bool_())])
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
    reexecuted: pa.Table,
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
            offset=int(reexecuted.column(vocabulary.offset)[position].as_py()),
            column=name,
            published=_text(published.column(name)[position]),
            reexecuted=_text(reexecuted.column(name)[position]),
            key=_row_key(reexecuted, position, vocabulary),
        )


def _row_key(table: pa.Table, position: int, vocabulary: Vocabulary) -> str:
    """Name a row for people: its event time and its leading text columns."""
    parts = []
    for field in table.schema:
        if field.name == vocabulary.event_time:
            value = _text(table.column(field.name)[position])
            parts.append("no event time" if value is None else value.partition("T")[0])
        elif pa.types.is_string(field.type):
            parts.append(_text(table.column(field.name)[position]) or "null")
    return ", ".join(parts[:3])


def _same_rows_in_other_order(published: pa.Table, reexecuted: pa.Table, vocabulary: Vocabulary) -> bool:
    names = [name for name in published.schema.names if name != vocabulary.offset]
    if any(pa.types.is_nested(published.schema.field(name).type) for name in names):
        return False
    keys = [(name, "ascending") for name in names]
    left = published.select(names).sort_by(keys)
    right = reexecuted.select(names).sort_by(keys)
    return all(not pc.any(_differs(left.column(name), right.column(name))).as_py() for name in names)


def _text(scalar: pa.Scalar) -> str | None:
    """Write a cell as people read it: decimals and numbers as they are, times in RFC 3339, bytes in hex."""
    value = cell_value(scalar)
    return None if value is None else str(value)


MAX_RELATIVE_ERROR: Final = 2.0**-30
"""Largest difference that passes for rounding, relative to the larger value.  # guess: a million additions of doubles
lose 2^-33; a figure that somebody changed differs by more, or by nothing that matters."""

_SIGN: Final = "\0sign"


def find_cause_in_rows(
    kind: str,
    columns: tuple[str, ...],
    published: pa.Table,
    reexecuted: pa.Table,
    vocabulary: Vocabulary,
    prev_watermark: Timestamp | None,
) -> Cause | None:
    """Find the causes that rows can show.

    Args:
        kind: Of the divergence.
        columns: That differ.
        published: What the peer says.
        reexecuted: What the engine gave; same columns.
        vocabulary: Names of the system columns.
        prev_watermark: That stood before the step.

    Returns:
        None where rows do not tell.
    """
    if kind == "row-order":
        return Cause.ORDER
    if kind == "cells" and columns and all(_is_rounding(published.column(n), reexecuted.column(n)) for n in columns):
        return Cause.FLOAT
    if kind == "row-count" and prev_watermark is not None:
        return _find_late(published, reexecuted, vocabulary, prev_watermark)
    return None


def _is_rounding(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(left.type) or not pc.all(pc.equal(left.is_null(), right.is_null())).as_py():
        return False
    left, right = pc.fill_null(left, 0.0).cast(pa.float64()), pc.fill_null(right, 0.0).cast(pa.float64())
    allowed = pc.multiply(pc.max_element_wise(pc.abs(left), pc.abs(right)), MAX_RELATIVE_ERROR)
    is_near = pc.and_(pc.is_finite(allowed), pc.less_equal(pc.abs(pc.subtract(left, right)), allowed))
    is_same = pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return bool(pc.all(pc.or_(is_near, is_same)).as_py())


def _find_late(
    published: pa.Table, reexecuted: pa.Table, vocabulary: Vocabulary, prev_watermark: Timestamp
) -> Cause | None:
    """Look whether all rows that only one side has are older than the watermark."""
    names = [name for name in published.column_names if name != vocabulary.offset]
    if any(pa.types.is_nested(published.schema.field(name).type) for name in names):
        return None
    both = pa.concat_tables(
        [
            table.select(names).append_column(_SIGN, pa.array([sign] * table.num_rows, pa.int64()))
            for table, sign in ((published, 1), (reexecuted, -1))
        ]
    )
    counted = both.group_by(names).aggregate([(_SIGN, "sum")])
    alone = counted.filter(pc.not_equal(counted.column(f"{_SIGN}_sum"), 0)).column(vocabulary.event_time)
    if not len(alone) or alone.null_count:
        return None
    newest = pc.max(alone.cast(pa.timestamp("ms", "UTC"))).cast(pa.int64()).as_py()
    return Cause.LATE_DATA if newest < prev_watermark.unix_ms else None
