"""What changed between two small results, found here instead of by Spark.

A step of a few rows gives a few rows. Spark would group them, look at each key and sort, and compile a program for each
of these; Arrow does it in a millisecond. Only columns whose values are equal only as the same bits are compared here,
and their order is that of Spark.

Source: clauses VIEW-4, VIEW-6 and VIEW-7 in ``spec/extensions/maintained-views.md``.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odf_spark.changelog import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odf_spark.sorted_runs import sort_rows

_SUM, _ROW, _ALL, _OP = "sum", "row", "all", "op"


def find_changes(
    rows: pa.Table, counts: pa.ChunkedArray, key: Sequence[int] | None
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the rows that a step gives and takes in their one order, and the operation of each.

    Args:
        rows: Of both results, with plain columns called v0, v1, ...
        counts: 1 for each row of the result after the step, -1 for each of the one before it.
        key: Positions of the columns that tell rows apart, None where nothing is known.
    """
    names = rows.column_names
    reported = rows.append_column(_SUM, counts.cast(pa.int64()))
    reported = reported.group_by(names, use_threads=False).aggregate([(_SUM, "sum")]).rename_columns([*names, _SUM])
    reported = reported.filter(pc.not_equal(reported.column(_SUM), 0))
    counted = np.asarray(reported.column(_SUM)).astype(np.int64)
    operations = np.where(counted > 0, APPEND, RETRACT)
    if key is not None:
        both = _has_both(reported, [names[position] for position in key], counted)
        operations = np.where(both, np.where(counted > 0, CORRECT_TO, CORRECT_FROM), operations)
    repeated = np.repeat(np.arange(reported.num_rows), np.abs(counted))
    order = names if key is None else [names[position] for position in key]
    # Of a pair the row that is taken comes first; other rows are equal in the order only if they are the same.
    found = reported.select(names).append_column(_OP, pa.array(operations, pa.int64())).take(pa.array(repeated))
    found = sort_rows(found, [*order, _OP])
    return found.select(names), np.asarray(found.column(_OP)).astype(np.int64)


def _has_both(reported: pa.Table, key: Sequence[str], counted: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say of each row whether rows of its key are given and taken."""
    keyed = reported.select([*key, _SUM]).append_column(_ALL, pa.repeat(0, reported.num_rows))
    keyed = keyed.append_column(_ROW, pa.array(np.arange(reported.num_rows)))
    asked = [(_SUM, "min"), (_SUM, "max"), (_ROW, "list")]
    groups = keyed.group_by([*key, _ALL], use_threads=False).aggregate(asked)
    is_both = np.asarray(pc.and_(pc.less(groups[f"{_SUM}_min"], 0), pc.greater(groups[f"{_SUM}_max"], 0)))
    members = groups[f"{_ROW}_list"]
    both = np.zeros(len(counted), dtype=np.bool_)
    both[np.asarray(pc.list_flatten(members))] = np.repeat(is_both, np.asarray(pc.list_value_length(members)))
    return both
