"""What stands after a version: all that was added less all that was taken away.

Source: clause FP-5 in ``spec/plug-ins/fingerprints.md``.
"""

import numpy as np

from odf_fingerprints.distinct import pack_registers, unpack_registers
from odf_fingerprints.documents import MAX_DAYS, ColumnFingerprint, RowsFingerprint
from odf_fingerprints.histograms import EMPTY, Histogram


def fold_rows(before: RowsFingerprint, added: RowsFingerprint, removed: RowsFingerprint) -> RowsFingerprint:
    """Return what stands after rows were added and others taken away.

    Columns are those of ``added``, or of what was before where nothing is added; a column that comes later is null in
    the rows before it (SCHEMA-1). A column whose kind changes begins anew with its rows as they are counted then.
    Delays are not known once rows were taken away, until none stands.

    Args:
        before: What stood before; ``RowsFingerprint()`` at the beginning.
        added: Rows appended, and as they are after corrections.
        removed: Rows retracted, and as they were before corrections.
    """
    rows = max(0, before.rows + added.rows - removed.rows)
    named = {column.name: column for column in before.columns}
    named |= {column.name: column for column in (*removed.columns, *added.columns)}
    columns = []
    for name, newest in named.items():
        parts = [each.column(name) for each in (before, added, removed)]
        columns.append(_fold_column(newest, rows, *(p if p and p.kind == newest.kind else None for p in parts)))
    days = before.day_counts.plus(added.day_counts).plus(removed.day_counts, -1).bounded(MAX_DAYS)
    # A row that is taken away had another delay when it came: that of a removal is counted up to the removing block.
    is_known = not removed.rows and (bool(before.delay) or not before.rows)
    delays = before.delays.plus(added.delays).bounded() if is_known else EMPTY
    return RowsFingerprint(rows=rows, columns=tuple(columns), days=days.pack(), delay=delays.pack())


def _fold_column(
    newest: ColumnFingerprint,
    rows: int,
    before: ColumnFingerprint | None,
    added: ColumnFingerprint | None,
    removed: ColumnFingerprint | None,
) -> ColumnFingerprint:
    signed = [(each, sign) for each, sign in ((before, 1), (added, 1), (removed, -1)) if each is not None]
    values = max(0, sum(sign * each.values for each, sign in signed))
    is_grown = removed is None or not removed.values
    return ColumnFingerprint(
        name=newest.name,
        type=newest.type,
        kind=newest.kind,
        values=min(values, rows),
        nulls=max(0, rows - values),
        not_finite=max(0, sum(sign * each.not_finite for each, sign in signed)),
        packed=_fold([(each.packed, sign) for each, sign in signed]),
        lengths=_fold([(each.lengths, sign) for each, sign in signed]),
        sketch=_join(before, added) if is_grown else b"",
    )


def _fold(signed: list[tuple[bytes, int]]) -> bytes:
    found = Histogram.unpack(b"")
    for packed, sign in signed:
        if packed:
            found = found.plus(Histogram.unpack(packed), sign)
    return found.bounded().pack()


def _join(before: ColumnFingerprint | None, added: ColumnFingerprint | None) -> bytes:
    """Join sketches; none where values were counted without one, as rows were taken away earlier."""
    counted = [each for each in (before, added) if each is not None and each.values]
    if not counted or not all(each.sketch for each in counted):
        return b""
    return pack_registers(np.maximum.reduce([unpack_registers(each.sketch) for each in counted]))
