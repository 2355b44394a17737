"""Which causes of a divergence the rows themselves can show.

Source: clause REPLAY-10 in ``spec/extensions/replay.md``.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_protocol.divergence_cause import Cause
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

MAX_RELATIVE_ERROR: Final = 2.0**-30
"""Largest difference that passes for rounding, relative to the larger value.  # guess: a million additions of doubles
lose 2^-33; a figure that somebody changed differs by more, or by nothing that matters."""

_SIGN: Final = "\0sign"


def find_cause_in_rows(
    kind: str,
    columns: tuple[str, ...],
    published: pa.Table,
    recomputed: pa.Table,
    vocabulary: Vocabulary,
    prev_watermark: Timestamp | None,
) -> Cause | None:
    """Find the causes that rows can show.

    Args:
        kind: Of the divergence.
        columns: That differ.
        published: What the peer says.
        recomputed: What the engine gave; same columns.
        vocabulary: Names of the system columns.
        prev_watermark: That stood before the step.

    Returns:
        None where rows do not tell.
    """
    if kind == "row-order":
        return Cause.ORDER
    if kind == "cells" and columns and all(_is_rounding(published.column(n), recomputed.column(n)) for n in columns):
        return Cause.FLOAT
    if kind == "row-count" and prev_watermark is not None:
        return _find_late(published, recomputed, vocabulary, prev_watermark)
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
    published: pa.Table, recomputed: pa.Table, vocabulary: Vocabulary, prev_watermark: Timestamp
) -> Cause | None:
    """Look whether all rows that only one side has are older than the watermark."""
    names = [name for name in published.column_names if name != vocabulary.offset]
    if any(pa.types.is_nested(published.schema.field(name).type) for name in names):
        return None
    both = pa.concat_tables(
        [
            table.select(names).append_column(_SIGN, pa.array([sign] * table.num_rows, pa.int64()))
            for table, sign in ((published, 1), (recomputed, -1))
        ]
    )
    counted = both.group_by(names).aggregate([(_SIGN, "sum")])
    alone = counted.filter(pc.not_equal(counted.column(f"{_SIGN}_sum"), 0)).column(vocabulary.event_time)
    if not len(alone) or alone.null_count:
        return None
    newest = pc.max(alone.cast(pa.timestamp("ms", "UTC"))).cast(pa.int64()).as_py()
    return Cause.LATE_DATA if newest < prev_watermark.unix_ms else None
